-- Times are microseconds since 1970-01-01 UTC. Enums are the numbers of the contract; state 1 is ACTIVE, pool 2 SHARED.
-- `body` is opaque to the store; `key_id` names the key it is encrypted with ('' = not encrypted).

CREATE TABLE memories (
    memory_id           TEXT    NOT NULL PRIMARY KEY,
    namespace           TEXT    NOT NULL,
    subject_id          TEXT    NOT NULL,
    session_id          TEXT    NOT NULL,
    kind                INTEGER NOT NULL,
    layer               INTEGER NOT NULL,
    state               INTEGER NOT NULL,
    pool                INTEGER NOT NULL,
    category            TEXT    NOT NULL,
    fact_key            TEXT    NOT NULL,
    source_type         INTEGER NOT NULL,
    confidence          REAL    NOT NULL,
    content_hash        TEXT    NOT NULL,
    statement_key       TEXT    NOT NULL,
    version             INTEGER NOT NULL,
    create_time_us      INTEGER NOT NULL,
    update_time_us      INTEGER NOT NULL,
    event_time_us       INTEGER,
    valid_from_us       INTEGER,
    valid_to_us         INTEGER,
    expire_time_us      INTEGER,
    superseded_by_id    TEXT    NOT NULL,
    strength            REAL    NOT NULL,
    strength_time_us    INTEGER NOT NULL,
    access_count        INTEGER NOT NULL,
    last_access_time_us INTEGER,
    sequence            INTEGER NOT NULL,
    body                BLOB    NOT NULL,
    key_id              TEXT    NOT NULL DEFAULT '',
    fields              TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX memories_active_statement ON memories (namespace, subject_id, kind, statement_key)
    WHERE state = 1;
CREATE INDEX memories_active_content ON memories (namespace, subject_id, kind, content_hash) WHERE state = 1;
CREATE UNIQUE INDEX memories_active_fact ON memories (namespace, subject_id, fact_key)
    WHERE state = 1 AND fact_key <> '';
-- For reading: the planner does not see within a scope of several namespaces that the unique one would do.
CREATE INDEX memories_by_fact ON memories (namespace, subject_id, fact_key) WHERE state = 1;
CREATE INDEX memories_newest ON memories (namespace, create_time_us, memory_id);
-- What was said beside a memory.
CREATE INDEX memories_session ON memories (namespace, session_id, sequence, create_time_us, memory_id)
    WHERE state = 1 AND session_id <> '';
CREATE INDEX memories_expiring ON memories (expire_time_us) WHERE expire_time_us IS NOT NULL;

-- Every version as it was recorded: system time in record_time_us, world time in valid_from_us and valid_to_us.
CREATE TABLE memory_versions (
    memory_id           TEXT    NOT NULL,
    namespace           TEXT    NOT NULL,
    subject_id          TEXT    NOT NULL,
    session_id          TEXT    NOT NULL,
    kind                INTEGER NOT NULL,
    layer               INTEGER NOT NULL,
    state               INTEGER NOT NULL,
    pool                INTEGER NOT NULL,
    category            TEXT    NOT NULL,
    fact_key            TEXT    NOT NULL,
    source_type         INTEGER NOT NULL,
    confidence          REAL    NOT NULL,
    content_hash        TEXT    NOT NULL,
    statement_key       TEXT    NOT NULL,
    version             INTEGER NOT NULL,
    create_time_us      INTEGER NOT NULL,
    update_time_us      INTEGER NOT NULL,
    event_time_us       INTEGER,
    valid_from_us       INTEGER,
    valid_to_us         INTEGER,
    expire_time_us      INTEGER,
    superseded_by_id    TEXT    NOT NULL,
    strength            REAL    NOT NULL,
    strength_time_us    INTEGER NOT NULL,
    access_count        INTEGER NOT NULL,
    last_access_time_us INTEGER,
    sequence            INTEGER NOT NULL,
    body                BLOB    NOT NULL,
    key_id              TEXT    NOT NULL DEFAULT '',
    record_time_us      INTEGER NOT NULL,
    principal_id        TEXT    NOT NULL,
    change              TEXT    NOT NULL,
    reason              TEXT    NOT NULL,
    PRIMARY KEY (memory_id, version)
) STRICT;

CREATE INDEX memory_versions_recorded ON memory_versions (namespace, record_time_us);

-- `vector` is float32, little-endian, of length 1.
CREATE TABLE embeddings (
    memory_id TEXT    NOT NULL,
    version   INTEGER NOT NULL,
    model     TEXT    NOT NULL,
    vector    BLOB    NOT NULL,
    PRIMARY KEY (memory_id, version, model)
) STRICT;

-- One row: the newest position ever given.
CREATE TABLE last_position (
    position INTEGER NOT NULL
) STRICT;

INSERT INTO last_position (position) VALUES (0);

-- The indexes that follow the store. AUTOINCREMENT: rows left by a retired index never become another's.
CREATE TABLE indexes (
    index_id     INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    seen_time_us INTEGER NOT NULL
) STRICT;

-- A row for each change and index until the index has applied it. It is offered from `due_time_us` on; while somebody
-- (`lease_owner`) holds it, that is when the lease ends. `attempts` counts tries that failed. `abandoned`: somebody held
-- it and did not settle it.
CREATE TABLE outbox (
    index_id    INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    memory_id   TEXT    NOT NULL,
    namespace   TEXT    NOT NULL,
    time_us     INTEGER NOT NULL,
    lease_owner TEXT    NOT NULL DEFAULT '',
    due_time_us INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    reason      TEXT    NOT NULL DEFAULT '',
    abandoned   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (index_id, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_memory ON outbox (memory_id, index_id, position);
CREATE INDEX outbox_namespace ON outbox (namespace, index_id, position);
CREATE INDEX outbox_leased ON outbox (lease_owner) WHERE lease_owner <> '';
CREATE INDEX outbox_failed ON outbox (namespace, index_id, position) WHERE attempts > 0;

-- Outbox rows that were given up: `time_us` is when the change was made, `dead_time_us` when it was given up.
CREATE TABLE dead_letters (
    index_id     INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    memory_id    TEXT    NOT NULL,
    namespace    TEXT    NOT NULL,
    time_us      INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    dead_time_us INTEGER NOT NULL,
    PRIMARY KEY (index_id, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_memory ON dead_letters (memory_id, index_id, position);
CREATE INDEX dead_letters_namespace ON dead_letters (namespace, index_id, position);

-- Memories of which something old may yet reach an index: from `due_time_us` on they become outbox rows again.
CREATE TABLE doubts (
    index_id    INTEGER NOT NULL,
    memory_id   TEXT    NOT NULL,
    namespace   TEXT    NOT NULL,
    due_time_us INTEGER NOT NULL,
    PRIMARY KEY (memory_id, index_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX doubts_due ON doubts (index_id, due_time_us);

CREATE TABLE markers (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;

-- Long work that callers ask after; `metadata`, `response` and `error` are opaque and hold no content of memories.
CREATE TABLE operations (
    name           TEXT    NOT NULL PRIMARY KEY,
    principal_id   TEXT    NOT NULL,
    namespace      TEXT    NOT NULL,
    create_time_us INTEGER NOT NULL,
    update_time_us INTEGER NOT NULL,
    expire_time_us INTEGER NOT NULL,
    is_done        INTEGER NOT NULL,
    metadata       BLOB    NOT NULL,
    response       BLOB    NOT NULL,
    error          BLOB    NOT NULL
) STRICT;

CREATE INDEX operations_expiring ON operations (expire_time_us);
CREATE INDEX operations_own ON operations (principal_id, name);

-- `memory_id` NULL: nothing was stored (a refused write).
CREATE TABLE decisions (
    decision_id    INTEGER PRIMARY KEY,
    namespace      TEXT    NOT NULL,
    memory_id      TEXT,
    time_us        INTEGER NOT NULL,
    principal_id   TEXT    NOT NULL,
    action         INTEGER NOT NULL,
    score          REAL    NOT NULL,
    policy_version TEXT    NOT NULL,
    payload        BLOB    NOT NULL
) STRICT;

CREATE INDEX decisions_memory ON decisions (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX decisions_newest ON decisions (namespace, time_us);

CREATE TABLE conflicts (
    conflict_id INTEGER PRIMARY KEY,
    namespace   TEXT    NOT NULL,
    time_us     INTEGER NOT NULL,
    winner_id   TEXT    NOT NULL,
    loser_id    TEXT    NOT NULL,
    fact_key    TEXT    NOT NULL,
    similarity  REAL    NOT NULL,
    rule        TEXT    NOT NULL
) STRICT;

CREATE INDEX conflicts_winner ON conflicts (winner_id);
CREATE INDEX conflicts_loser ON conflicts (loser_id);
CREATE INDEX conflicts_newest ON conflicts (namespace, time_us);

CREATE TABLE requests (
    principal_id   TEXT    NOT NULL,
    request_id     TEXT    NOT NULL,
    namespace      TEXT    NOT NULL,
    payload_hash   TEXT    NOT NULL,
    response       BLOB    NOT NULL,
    expire_time_us INTEGER NOT NULL,
    PRIMARY KEY (principal_id, request_id)
) STRICT;

CREATE INDEX requests_expiring ON requests (expire_time_us);

-- Which memories a stored answer speaks of, so that erasing one finds the answer.
CREATE TABLE request_memories (
    memory_id    TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    PRIMARY KEY (memory_id, principal_id, request_id),
    FOREIGN KEY (principal_id, request_id) REFERENCES requests (principal_id, request_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX request_memories_request ON request_memories (principal_id, request_id);

CREATE TABLE retrievals (
    search_id      TEXT    NOT NULL PRIMARY KEY,
    namespace      TEXT    NOT NULL,
    principal_id   TEXT    NOT NULL,
    time_us        INTEGER NOT NULL,
    policy_version TEXT    NOT NULL,
    query_hash     TEXT    NOT NULL
) STRICT;

CREATE INDEX retrievals_newest ON retrievals (namespace, time_us);

-- `rank` 1 is the best hit.
CREATE TABLE retrieval_hits (
    search_id TEXT    NOT NULL,
    rank      INTEGER NOT NULL,
    memory_id TEXT    NOT NULL,
    score     REAL    NOT NULL,
    PRIMARY KEY (search_id, rank)
) STRICT, WITHOUT ROWID;

CREATE INDEX retrieval_hits_memory ON retrieval_hits (memory_id);

-- `day` counts from 1970-01-01 UTC.
CREATE TABLE access_buckets (
    memory_id TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    day       INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (memory_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX access_buckets_recent ON access_buckets (namespace, day);

-- What was erased, without a word of it.
CREATE TABLE tombstones (
    memory_id    TEXT    NOT NULL PRIMARY KEY,
    namespace    TEXT    NOT NULL,
    time_us      INTEGER NOT NULL,
    principal_id TEXT    NOT NULL,
    reason       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
