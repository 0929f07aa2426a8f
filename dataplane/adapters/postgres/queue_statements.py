"""What the write queue on PostgreSQL asks of its tables, each within one transaction.

Rules. A key is in one hand: whoever takes or renews does it under `TAKE_TURN`, so that the statement after it sees what
everybody before has taken, and whoever only removes cannot break that. A turn that finds nothing writes nothing.
"""

from typing import Final

from dataplane.adapters.postgres.clauses import fill

SET_ASIDE_KEPT: Final = 1_000

_WRITE: Final = "operation, principal_id, namespace, request, time_us, order_key"
# Rows of one's own slot are updated by few others, so that those who put do not wait for each other.
_COUNT: Final = """
INSERT INTO memplane.queue_size AS s (slot, entries)
    SELECT pg_backend_pid() %% 64, {change} WHERE EXISTS (SELECT FROM {rows})
    ON CONFLICT (slot) DO UPDATE SET entries = s.entries + excluded.entries"""
_GIVEN: Final = (
    "%(operation)s::text, %(principal_id)s::text, %(namespace)s::text, %(request)s::bytea, %(time_us)s::bigint,"
    " %(order_key)s::bytea"
)

PUT: Final = fill(
    """
WITH room AS MATERIALIZED (
    SELECT coalesce(sum(entries), 0) < %(max_entries)s::bigint AS is_left FROM memplane.queue_size),
added AS (
    INSERT INTO memplane.queued_writes ({write}) SELECT {given} FROM room WHERE is_left
    ON CONFLICT (operation) DO NOTHING RETURNING 1),
counted AS ({counted})
SELECT is_left OR EXISTS (SELECT FROM memplane.queued_writes WHERE operation = %(operation)s::text) FROM room""",
    write=_WRITE,
    given=_GIVEN,
    counted=fill(_COUNT, change="1", rows="added"),
)
"""Whether the write is in the queue afterwards."""

# Until the table is analysed the planner takes most writes to be in somebody's hands, and reads all to find them.
TAKE_TURN: Final = "SELECT pg_advisory_xact_lock(7236833521446219), set_config('enable_seqscan', 'off', true)"

GIVE_BACK: Final = """
UPDATE memplane.queued_writes SET owner = '', turn = 0, taken_until_us = 0, deliveries = deliveries - 1
WHERE owner = %(owner)s::text AND owner <> '' AND turn = ANY (%(turns)s::bigint[])"""

TAKE: Final = fill(
    """
WITH clock AS MATERIALIZED (SELECT memplane.now_us() AS now_us),
held AS MATERIALIZED (
    SELECT DISTINCT q.order_key FROM memplane.queued_writes AS q, clock
    WHERE q.owner <> '' AND q.owner <> %(owner)s::text AND q.taken_until_us > clock.now_us),
free AS MATERIALIZED (
    SELECT q.entry_id FROM memplane.queued_writes AS q
    WHERE q.taken_until_us <= (SELECT now_us FROM clock) AND q.order_key NOT IN (SELECT order_key FROM held)
    ORDER BY q.entry_id LIMIT %(page_size)s::bigint FOR UPDATE SKIP LOCKED)
UPDATE memplane.queued_writes AS q SET owner = %(owner)s::text, turn = %(turn)s::bigint,
    taken_until_us = clock.now_us + %(claim_us)s::bigint, deliveries = q.deliveries + 1
FROM free, clock WHERE q.entry_id = free.entry_id RETURNING q.entry_id, q.deliveries, {write}""",
    write=_WRITE,
)
"""The oldest that are free and whose key nobody else holds, in no order."""

RENEW: Final = """
UPDATE memplane.queued_writes SET taken_until_us = memplane.now_us() + %(claim_us)s::bigint
WHERE entry_id = ANY (%(entry_ids)s::bigint[]) AND owner = %(owner)s::text AND taken_until_us > memplane.now_us()"""

_REMOVED: Final = fill(
    """
gone AS (DELETE FROM memplane.queued_writes WHERE entry_id = ANY (%(entry_ids)s::bigint[]) RETURNING *),
counted AS ({counted})""",
    counted=fill(_COUNT, change="-(SELECT count(*) FROM gone)", rows="gone"),
)

REMOVE: Final = fill("WITH {removed} SELECT count(*) FROM gone", removed=_REMOVED)

SET_ASIDE: Final = fill(
    """
WITH {removed} INSERT INTO memplane.set_aside_writes (entry_id, deliveries, {write})
SELECT entry_id, deliveries, {write} FROM gone""",
    removed=_REMOVED,
    write=_WRITE,
)

LIST_SET_ASIDE: Final = fill(
    """
SELECT entry_id, {write} FROM memplane.set_aside_writes
WHERE entry_id > %(after_id)s::bigint ORDER BY entry_id LIMIT %(page_size)s::bigint""",
    write=_WRITE,
)

REPLAY_SET_ASIDE: Final = fill(
    """
WITH aside AS (
    DELETE FROM memplane.set_aside_writes
    WHERE %(is_all)s::boolean OR entry_id = ANY (%(entry_ids)s::bigint[]) RETURNING *),
added AS (
    INSERT INTO memplane.queued_writes ({write}) SELECT {write} FROM aside ORDER BY entry_id
    ON CONFLICT (operation) DO NOTHING RETURNING 1),
counted AS ({counted})
SELECT count(*) FROM aside""",
    write=_WRITE,
    counted=fill(_COUNT, change="(SELECT count(*) FROM added)", rows="added"),
)

FORGET_SET_ASIDE: Final = """
DELETE FROM memplane.set_aside_writes WHERE entry_id <= (
    SELECT entry_id FROM memplane.set_aside_writes ORDER BY entry_id DESC OFFSET %(kept)s::bigint LIMIT 1)"""

FIND: Final = fill("SELECT {write} FROM memplane.queued_writes WHERE operation = %(operation)s::text", write=_WRITE)

DEPTH: Final = """
SELECT (SELECT coalesce(sum(entries), 0)::bigint FROM memplane.queue_size),
    (SELECT count(*) FROM memplane.queued_writes WHERE owner <> '' AND taken_until_us > (SELECT memplane.now_us())),
    (SELECT time_us FROM memplane.queued_writes ORDER BY entry_id LIMIT 1),
    (SELECT count(*) FROM memplane.set_aside_writes)"""
