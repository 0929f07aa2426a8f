-- Times are microseconds since 1970-01-01 UTC. Enums are the numbers of the contract; state 1 is ACTIVE, pool 2 SHARED.
-- `body` is opaque to the store; `key_id` names the key it is encrypted with ('' = not encrypted). Texts compare by
-- their bytes, whatever the database's collation.

-- What the transaction may touch; nothing set is NULL, which matches nothing.
CREATE FUNCTION memplane.own() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('memplane.own', true), '')::text[];
CREATE FUNCTION memplane.shared() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('memplane.shared', true), '')::text[];

-- The store's clock.
CREATE FUNCTION memplane.now_us() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

CREATE TABLE memplane.memories (
    memory_id           text COLLATE "C"  NOT NULL PRIMARY KEY,
    namespace           text COLLATE "C"  NOT NULL,
    subject_id          text COLLATE "C"  NOT NULL,
    session_id          text COLLATE "C"  NOT NULL,
    kind                smallint          NOT NULL,
    layer               smallint          NOT NULL,
    state               smallint          NOT NULL,
    pool                smallint          NOT NULL,
    category            text COLLATE "C"  NOT NULL,
    fact_key            text COLLATE "C"  NOT NULL,
    source_type         smallint          NOT NULL,
    confidence          double precision  NOT NULL,
    content_hash        text COLLATE "C"  NOT NULL,
    statement_key       text COLLATE "C"  NOT NULL,
    version             bigint            NOT NULL,
    create_time_us      bigint            NOT NULL,
    update_time_us      bigint            NOT NULL,
    event_time_us       bigint,
    valid_from_us       bigint,
    valid_to_us         bigint,
    expire_time_us      bigint,
    superseded_by_id    text COLLATE "C"  NOT NULL,
    strength            double precision  NOT NULL,
    strength_time_us    bigint            NOT NULL,
    access_count        bigint            NOT NULL,
    last_access_time_us bigint,
    sequence            bigint            NOT NULL,
    body                bytea             NOT NULL,
    key_id              text COLLATE "C"  NOT NULL DEFAULT '',
    fields              jsonb             NOT NULL
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX memories_active_statement ON memplane.memories (namespace, subject_id, kind, statement_key)
    WHERE state = 1;
CREATE INDEX memories_active_content ON memplane.memories (namespace, subject_id, kind, content_hash) WHERE state = 1;
CREATE UNIQUE INDEX memories_active_fact ON memplane.memories (namespace, subject_id, fact_key)
    WHERE state = 1 AND fact_key <> '';
CREATE INDEX memories_newest ON memplane.memories (namespace, create_time_us, memory_id);
-- What was said beside a memory.
CREATE INDEX memories_session ON memplane.memories (namespace, session_id, sequence, create_time_us, memory_id)
    WHERE state = 1 AND session_id <> '';
CREATE INDEX memories_expiring ON memplane.memories (expire_time_us) WHERE expire_time_us IS NOT NULL;

-- Every version as it was recorded: system time in record_time_us, world time in valid_from_us and valid_to_us.
CREATE TABLE memplane.memory_versions (
    memory_id           text COLLATE "C"  NOT NULL,
    namespace           text COLLATE "C"  NOT NULL,
    subject_id          text COLLATE "C"  NOT NULL,
    session_id          text COLLATE "C"  NOT NULL,
    kind                smallint          NOT NULL,
    layer               smallint          NOT NULL,
    state               smallint          NOT NULL,
    pool                smallint          NOT NULL,
    category            text COLLATE "C"  NOT NULL,
    fact_key            text COLLATE "C"  NOT NULL,
    source_type         smallint          NOT NULL,
    confidence          double precision  NOT NULL,
    content_hash        text COLLATE "C"  NOT NULL,
    statement_key       text COLLATE "C"  NOT NULL,
    version             bigint            NOT NULL,
    create_time_us      bigint            NOT NULL,
    update_time_us      bigint            NOT NULL,
    event_time_us       bigint,
    valid_from_us       bigint,
    valid_to_us         bigint,
    expire_time_us      bigint,
    superseded_by_id    text COLLATE "C"  NOT NULL,
    strength            double precision  NOT NULL,
    strength_time_us    bigint            NOT NULL,
    access_count        bigint            NOT NULL,
    last_access_time_us bigint,
    sequence            bigint            NOT NULL,
    body                bytea             NOT NULL,
    key_id              text COLLATE "C"  NOT NULL DEFAULT '',
    record_time_us      bigint            NOT NULL,
    principal_id        text COLLATE "C"  NOT NULL,
    change              text COLLATE "C"  NOT NULL,
    reason              text COLLATE "C"  NOT NULL,
    PRIMARY KEY (memory_id, version)
);

CREATE INDEX memory_versions_recorded ON memplane.memory_versions (namespace, record_time_us, memory_id);

-- `vector` is float32, little-endian, of length 1. `pool` is that of the version.
CREATE TABLE memplane.embeddings (
    memory_id text COLLATE "C" NOT NULL,
    version   bigint           NOT NULL,
    model     text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    pool      smallint         NOT NULL,
    vector    bytea            NOT NULL,
    PRIMARY KEY (memory_id, version, model)
);
ALTER TABLE memplane.embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;

-- One row: the newest position ever given. It is updated last in a transaction, so that positions rise in commit order.
CREATE TABLE memplane.last_position (
    is_only  boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (is_only),
    position bigint  NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

INSERT INTO memplane.last_position (position) VALUES (0);

-- The indexes that follow the store.
CREATE TABLE memplane.indexes (
    index_id     bigint           NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name         text COLLATE "C" NOT NULL UNIQUE,
    seen_time_us bigint           NOT NULL
);

-- A row for each change and index until the index has applied it. It is offered from `due_time_us` on; while somebody
-- (`lease_owner`) holds it, that is when the lease ends. `attempts` counts tries that failed. `abandoned`: somebody held
-- it and did not settle it. Rows come and go all the time, so it is vacuumed by count and without pauses.
CREATE TABLE memplane.outbox (
    index_id    bigint           NOT NULL,
    position    bigint           NOT NULL,
    memory_id   text COLLATE "C" NOT NULL,
    namespace   text COLLATE "C" NOT NULL,
    time_us     bigint           NOT NULL,
    lease_owner text COLLATE "C" NOT NULL DEFAULT '',
    due_time_us bigint           NOT NULL DEFAULT 0,
    attempts    integer          NOT NULL DEFAULT 0,
    reason      text COLLATE "C" NOT NULL DEFAULT '',
    abandoned   boolean          NOT NULL DEFAULT false,
    PRIMARY KEY (index_id, position)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 10000
);

CREATE INDEX outbox_memory ON memplane.outbox (memory_id, index_id, position);
CREATE INDEX outbox_namespace ON memplane.outbox (namespace, index_id, position);
CREATE INDEX outbox_leased ON memplane.outbox (lease_owner) WHERE lease_owner <> '';
CREATE INDEX outbox_failed ON memplane.outbox (namespace, index_id, position) WHERE attempts > 0;

-- Outbox rows that were given up: `time_us` is when the change was made, `dead_time_us` when it was given up.
CREATE TABLE memplane.dead_letters (
    index_id     bigint           NOT NULL,
    position     bigint           NOT NULL,
    memory_id    text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    time_us      bigint           NOT NULL,
    attempts     integer          NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    dead_time_us bigint           NOT NULL,
    PRIMARY KEY (index_id, position)
);

CREATE INDEX dead_letters_memory ON memplane.dead_letters (memory_id, index_id, position);
CREATE INDEX dead_letters_namespace ON memplane.dead_letters (namespace, index_id, position);

-- Memories of which something old may yet reach an index: from `due_time_us` on they become outbox rows again.
CREATE TABLE memplane.doubts (
    index_id    bigint           NOT NULL,
    memory_id   text COLLATE "C" NOT NULL,
    namespace   text COLLATE "C" NOT NULL,
    due_time_us bigint           NOT NULL,
    PRIMARY KEY (memory_id, index_id)
);

CREATE INDEX doubts_due ON memplane.doubts (index_id, due_time_us);

CREATE TABLE memplane.markers (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value bigint           NOT NULL
);

-- Long work that callers ask after; `metadata`, `response` and `error` are opaque and hold no content of memories.
CREATE TABLE memplane.operations (
    name           text COLLATE "C" NOT NULL PRIMARY KEY,
    principal_id   text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    create_time_us bigint           NOT NULL,
    update_time_us bigint           NOT NULL,
    expire_time_us bigint           NOT NULL,
    is_done        boolean          NOT NULL,
    metadata       bytea            NOT NULL,
    response       bytea            NOT NULL,
    error          bytea            NOT NULL
);

CREATE INDEX operations_expiring ON memplane.operations (expire_time_us);
CREATE INDEX operations_own ON memplane.operations (principal_id, name);

-- `memory_id` NULL: nothing was stored (a refused write).
CREATE TABLE memplane.decisions (
    decision_id    bigint           NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    namespace      text COLLATE "C" NOT NULL,
    memory_id      text COLLATE "C",
    time_us        bigint           NOT NULL,
    principal_id   text COLLATE "C" NOT NULL,
    action         smallint         NOT NULL,
    score          double precision NOT NULL,
    policy_version text COLLATE "C" NOT NULL,
    payload        bytea            NOT NULL
);

CREATE INDEX decisions_memory ON memplane.decisions (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX decisions_newest ON memplane.decisions (namespace, time_us);

CREATE TABLE memplane.conflicts (
    conflict_id bigint           NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    namespace   text COLLATE "C" NOT NULL,
    time_us     bigint           NOT NULL,
    winner_id   text COLLATE "C" NOT NULL,
    loser_id    text COLLATE "C" NOT NULL,
    fact_key    text COLLATE "C" NOT NULL,
    similarity  double precision NOT NULL,
    rule        text COLLATE "C" NOT NULL
);

CREATE INDEX conflicts_winner ON memplane.conflicts (winner_id);
CREATE INDEX conflicts_loser ON memplane.conflicts (loser_id);
CREATE INDEX conflicts_newest ON memplane.conflicts (namespace, time_us);

CREATE TABLE memplane.requests (
    principal_id   text COLLATE "C" NOT NULL,
    request_id     text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    payload_hash   text COLLATE "C" NOT NULL,
    response       bytea            NOT NULL,
    expire_time_us bigint           NOT NULL,
    PRIMARY KEY (principal_id, request_id)
);

CREATE INDEX requests_expiring ON memplane.requests (expire_time_us);

-- Which memories a stored answer speaks of, so that erasing one finds the answer. Rows of expired requests go with them.
CREATE TABLE memplane.request_memories (
    memory_id    text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    request_id   text COLLATE "C" NOT NULL,
    namespace    text COLLATE "C" NOT NULL,
    PRIMARY KEY (principal_id, request_id, memory_id)
);

CREATE INDEX request_memories_memory ON memplane.request_memories (memory_id);

-- What was erased, without a word of it.
CREATE TABLE memplane.tombstones (
    memory_id    text COLLATE "C" NOT NULL PRIMARY KEY,
    namespace    text COLLATE "C" NOT NULL,
    time_us      bigint           NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    reason       text COLLATE "C" NOT NULL
);

-- The logs that grow without end are kept by month; what no month takes lies in the default partition.
CREATE TABLE memplane.retrievals (
    search_id      text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    principal_id   text COLLATE "C" NOT NULL,
    time_us        bigint           NOT NULL,
    policy_version text COLLATE "C" NOT NULL,
    query_hash     text COLLATE "C" NOT NULL,
    PRIMARY KEY (search_id, time_us)
) PARTITION BY RANGE (time_us);

CREATE INDEX retrievals_newest ON memplane.retrievals (namespace, time_us);
CREATE TABLE memplane.retrievals_default PARTITION OF memplane.retrievals DEFAULT;

-- `rank` 1 is the best hit; `time_us` and `namespace` are those of the search.
CREATE TABLE memplane.retrieval_hits (
    search_id text COLLATE "C" NOT NULL,
    time_us   bigint           NOT NULL,
    rank      integer          NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    memory_id text COLLATE "C" NOT NULL,
    score     double precision NOT NULL,
    PRIMARY KEY (search_id, time_us, rank)
) PARTITION BY RANGE (time_us);

CREATE INDEX retrieval_hits_memory ON memplane.retrieval_hits (memory_id);
CREATE TABLE memplane.retrieval_hits_default PARTITION OF memplane.retrieval_hits DEFAULT;

-- `day` counts from 1970-01-01 UTC.
CREATE TABLE memplane.access_buckets (
    memory_id text COLLATE "C" NOT NULL,
    day       integer          NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    count     bigint           NOT NULL,
    PRIMARY KEY (memory_id, day)
) PARTITION BY RANGE (day);

-- `count` is not in it, so that counting one access more touches no index.
CREATE INDEX access_buckets_recent ON memplane.access_buckets (namespace, day);
CREATE TABLE memplane.access_buckets_default PARTITION OF memplane.access_buckets DEFAULT;

-- Makes the monthly partitions from the last month to `ahead` months from now, and moves into them what the default
-- partition holds of their months; how many it made. Runs as the owner, so that the data plane may call it.
CREATE FUNCTION memplane.make_partitions(ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    parent text;
    key text;
    unit bigint;
    start timestamp;
    part text;
    low bigint;
    high bigint;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(7236833521446217);
    FOR parent, key, unit IN VALUES
        ('retrievals', 'time_us', 1), ('retrieval_hits', 'time_us', 1), ('access_buckets', 'day', 86400000000)
    LOOP
        FOR month IN -1..least(ahead, 24) LOOP
            start := date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => month);
            part := parent || to_char(start, '_YYYY_MM');
            CONTINUE WHEN to_regclass(format('memplane.%I', part)) IS NOT NULL;
            low := (extract(epoch FROM start) * 1000000)::bigint / unit;
            high := (extract(epoch FROM start + interval '1 month') * 1000000)::bigint / unit;
            EXECUTE format('LOCK TABLE memplane.%I IN ACCESS EXCLUSIVE MODE', parent || '_default');
            EXECUTE format('CREATE TABLE memplane.%I (LIKE memplane.%I INCLUDING ALL)', part, parent);
            EXECUTE format(
                'WITH moved AS (DELETE FROM memplane.%I WHERE %I >= %s AND %I < %s RETURNING *)'
                ' INSERT INTO memplane.%I SELECT * FROM moved', parent, key, low, key, high, part);
            EXECUTE format(
                'ALTER TABLE memplane.%I ATTACH PARTITION memplane.%I FOR VALUES FROM (%s) TO (%s)',
                parent, part, low, high);
            EXECUTE format('ALTER TABLE memplane.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$body$;
REVOKE ALL ON FUNCTION memplane.make_partitions FROM PUBLIC;

-- Analyses the tables that grow with every commit once they have 256 KiB, if nobody ever did; how many are left that
-- nobody did. Autovacuum comes once a minute, and until then the planner knows nothing of them. Runs as the owner.
CREATE FUNCTION memplane.analyse_young() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    young text[] := ARRAY['memories', 'memory_versions', 'embeddings', 'outbox', 'requests'];
    name text;
BEGIN
    IF pg_try_advisory_xact_lock(7236833521446220) THEN
        FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'memplane'::regnamespace
            AND relname = ANY (young) AND reltuples < 0 AND pg_relation_size(oid) >= 262144
        LOOP
            EXECUTE format('ANALYZE memplane.%I', name);
        END LOOP;
    END IF;
    RETURN (SELECT count(*) FROM pg_class WHERE relnamespace = 'memplane'::regnamespace
        AND relname = ANY (young) AND reltuples < 0);
END
$body$;
REVOKE ALL ON FUNCTION memplane.analyse_young FROM PUBLIC;

-- Row-level security binds the owner, too. A memory is seen by those who may read its namespace, and when it is SHARED
-- by those who may read the shared ones of its namespace; its versions and embeddings likewise, by their own pool. The
-- policies are CASEs so that the planner takes them as they are: of an OR it would make index conditions, believe that
-- they leave a hundredth of the rows, and sort a whole namespace to list its newest 50.
DO $body$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class AS c
        WHERE relnamespace = 'memplane'::regnamespace AND relkind IN ('r', 'p') AND EXISTS (SELECT 1 FROM pg_attribute
            WHERE attrelid = c.oid AND attname = 'namespace' AND NOT attisdropped)
    LOOP
        EXECUTE format('ALTER TABLE memplane.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['memories', 'memory_versions', 'embeddings'] LOOP
        EXECUTE format(
            'CREATE POLICY tenant ON memplane.%I USING (CASE WHEN namespace = ANY ((SELECT memplane.own())::text[])'
            ' THEN true WHEN pool = 2 THEN namespace = ANY ((SELECT memplane.shared())::text[]) ELSE false END)', name);
    END LOOP;
    -- What has no pool is its namespace's own. Who may change shared memories may add to the logs beside them.
    FOREACH name IN ARRAY ARRAY['decisions', 'conflicts', 'requests', 'request_memories', 'tombstones', 'operations',
        'dead_letters', 'doubts', 'retrievals', 'retrieval_hits']
    LOOP
        EXECUTE format(
            'CREATE POLICY tenant ON memplane.%I USING (namespace = ANY ((SELECT memplane.own())::text[]))', name);
        EXECUTE format(
            'CREATE POLICY tenant_adds ON memplane.%I FOR INSERT'
            ' WITH CHECK (namespace = ANY ((SELECT memplane.shared())::text[]))', name);
    END LOOP;
    -- What tells of a memory is seen with it.
    FOREACH name IN ARRAY ARRAY['outbox', 'access_buckets'] LOOP
        EXECUTE format(
            'CREATE POLICY tenant ON memplane.%I USING (CASE WHEN namespace = ANY ((SELECT memplane.own())::text[])'
            ' THEN true WHEN namespace = ANY ((SELECT memplane.shared())::text[]) THEN EXISTS'
            ' (SELECT 1 FROM memplane.memories AS m WHERE m.memory_id = %I.memory_id) ELSE false END)', name, name);
    END LOOP;
END
$body$;
