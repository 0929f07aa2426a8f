-- Vector and text index for companies that run PostgreSQL alone. Both are derived from `memories`: they may be emptied
-- and filled again. `fields` is what filters see; `fingerprint` serves to compare an index with the store.

-- `terms` has a lexeme for each distinct token, by which a query finds memories. `weights` go with `tokens`, the same
-- lexemes in order: the weight of each in this memory, which is the part of BM25 that depends on no other.
CREATE TABLE memplane.text_entries (
    tokenizer   text COLLATE "C"   NOT NULL,
    memory_id   text COLLATE "C"   NOT NULL,
    version     bigint             NOT NULL,
    namespace   text COLLATE "C"   NOT NULL,
    pool        smallint           NOT NULL,
    fields      jsonb              NOT NULL,
    fingerprint text COLLATE "C"   NOT NULL,
    terms       tsvector           NOT NULL,
    tokens      text[] COLLATE "C" NOT NULL,
    weights     real[]             NOT NULL,
    PRIMARY KEY (tokenizer, memory_id)
);

CREATE INDEX text_entries_terms ON memplane.text_entries USING gin (terms) WITH (fastupdate = off);
CREATE INDEX text_entries_scope ON memplane.text_entries (namespace, tokenizer, pool);

ALTER TABLE memplane.text_entries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memplane.text_entries USING (namespace = ANY ((SELECT memplane.own())::text[])
    OR (pool = 2 AND namespace = ANY ((SELECT memplane.shared())::text[])));

-- Numbers that data planes keep in an index (`entries`: its table, and the tokenizer of text entries), by name; they go
-- when it is cleared. They are no memories, so no scope narrows them.
CREATE TABLE memplane.index_beacons (
    entries text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    value   bigint           NOT NULL,
    PRIMARY KEY (entries, name)
);

-- Which table holds the embeddings of a model, and which model searches use.
CREATE TABLE memplane.vector_tables (
    model      text COLLATE "C" NOT NULL PRIMARY KEY,
    table_name text COLLATE "C" NOT NULL UNIQUE,
    dimension  integer          NOT NULL,
    is_active  boolean          NOT NULL DEFAULT false
);

CREATE UNIQUE INDEX vector_tables_active ON memplane.vector_tables (is_active) WHERE is_active;

-- The name of the table for a model's embeddings, made where it is missing: with the HNSW index, row-level security and
-- the rights of `text_entries`. NULL: there is one for another dimension. Runs as the owner, for the data plane owns
-- nothing; whoever may write text entries may call it.
CREATE FUNCTION memplane.make_vector_table(wanted_model text, wanted_dimension integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    known memplane.vector_tables;
    name text := 'vectors_' || left(encode(sha256(convert_to(wanted_model, 'UTF8')), 'hex'), 16);
    extension text;
    policy record;
    granted record;
BEGIN
    IF NOT has_table_privilege(session_user, 'memplane.text_entries', 'INSERT') THEN
        RAISE insufficient_privilege;
    END IF;
    PERFORM pg_advisory_xact_lock(7236833521446218);
    SELECT * INTO known FROM memplane.vector_tables WHERE model = wanted_model;
    IF FOUND THEN
        RETURN CASE WHEN known.dimension = wanted_dimension THEN known.table_name END;
    END IF;
    SELECT n.nspname INTO STRICT extension FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
        WHERE e.extname = 'vector';
    EXECUTE format('DROP TABLE IF EXISTS memplane.%I', name);  -- one that the register has lost
    EXECUTE format(
        'CREATE TABLE memplane.%I (memory_id text COLLATE "C" NOT NULL PRIMARY KEY, version bigint NOT NULL,'
        ' namespace text COLLATE "C" NOT NULL, pool smallint NOT NULL, fields jsonb NOT NULL,'
        ' fingerprint text COLLATE "C" NOT NULL, embedding %I.vector(%s) NOT NULL)', name, extension, wanted_dimension);
    EXECUTE format('ALTER TABLE memplane.%I ALTER COLUMN embedding SET STORAGE PLAIN', name);
    EXECUTE format(
        'CREATE INDEX %I ON memplane.%I USING hnsw (embedding %I.vector_cosine_ops)'
        ' WITH (m = 16, ef_construction = 200)', name || '_hnsw', name, extension);
    EXECUTE format('CREATE INDEX %I ON memplane.%I (namespace)', name || '_namespace', name);
    EXECUTE format('ALTER TABLE memplane.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    FOR policy IN SELECT p.policyname, p.qual, (SELECT string_agg(quote_ident(r), ', ') FROM unnest(p.roles) AS r) AS roles
        FROM pg_policies AS p WHERE p.schemaname = 'memplane' AND p.tablename = 'text_entries'
    LOOP
        EXECUTE format('CREATE POLICY %I ON memplane.%I TO %s USING (%s)', policy.policyname, name,
            CASE policy.roles WHEN 'public' THEN 'PUBLIC' ELSE policy.roles END, policy.qual);
    END LOOP;
    FOR granted IN SELECT DISTINCT g.grantee::regrole::text AS grantee
        FROM pg_class AS c, LATERAL aclexplode(c.relacl) AS g
        WHERE c.oid = 'memplane.text_entries'::regclass AND g.privilege_type = 'INSERT' AND g.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON memplane.%I TO %s', name, granted.grantee);
    END LOOP;
    INSERT INTO memplane.vector_tables (model, table_name, dimension) VALUES (wanted_model, name, wanted_dimension);
    RETURN name;
END
$body$;
