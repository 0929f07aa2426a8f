-- The write queue for companies that run PostgreSQL alone.

-- A write is offered in the order of `entry_id`; while somebody (`owner`) has it, `taken_until_us` (the store's clock) is
-- when he loses it. `turn` counts what an owner took, so that what never reached him can be given back. `order_key` is
-- UTF-8 and may hold NUL. Rows come and go all the time, so the table is vacuumed by count and without pauses.
CREATE TABLE memplane.queued_writes (
    entry_id       bigint           NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    operation      text COLLATE "C" NOT NULL UNIQUE,
    principal_id   text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    request        bytea            NOT NULL,
    time_us        bigint           NOT NULL,
    order_key      bytea            NOT NULL,
    owner          text COLLATE "C" NOT NULL DEFAULT '',
    turn           bigint           NOT NULL DEFAULT 0,
    taken_until_us bigint           NOT NULL DEFAULT 0,
    deliveries     integer          NOT NULL DEFAULT 0
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000
);

CREATE INDEX queued_writes_taken ON memplane.queued_writes (owner) WHERE owner <> '';

-- Writes that cannot be applied, to be looked at.
CREATE TABLE memplane.set_aside_writes (
    entry_id     bigint           NOT NULL PRIMARY KEY,
    operation    text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    request      bytea            NOT NULL,
    time_us      bigint           NOT NULL,
    order_key    bytea            NOT NULL,
    deliveries   integer          NOT NULL
);

-- How many rows queued_writes has is the sum of `entries`, so that none has to be counted to accept one more. Each
-- connection counts in a slot of its own as a rule, so that those who put do not wait for each other.
CREATE TABLE memplane.queue_size (
    slot    integer NOT NULL PRIMARY KEY,
    entries bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

ALTER TABLE memplane.queued_writes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memplane.queued_writes USING (namespace = ANY ((SELECT memplane.own())::text[]));
ALTER TABLE memplane.set_aside_writes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memplane.set_aside_writes USING (namespace = ANY ((SELECT memplane.own())::text[]));
