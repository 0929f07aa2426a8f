"""The tables of the revision store in PostgreSQL, in a schema of their own, beside any that data planes use."""

SCHEMA = "memplane_control"
SCHEMA_VERSION = 1
LOCK = 7_236_833_521_446_217
"""Held by whoever writes, until the transaction ends. Any number, the same for every release."""

VERSION_QUERY = "SELECT to_regclass('memplane_control.schema_version') IS NOT NULL"

STATEMENTS = (
    # Not IF NOT EXISTS: that asks for the right to make schemas also where an administrator has made this one.
    """DO $$ BEGIN
      IF to_regnamespace('memplane_control') IS NULL THEN CREATE SCHEMA memplane_control; END IF;
    END $$""",
    "CREATE TABLE memplane_control.schema_version (version integer NOT NULL)",
    f"INSERT INTO memplane_control.schema_version VALUES ({SCHEMA_VERSION})",  # noqa: S608 - constants
    """CREATE TABLE memplane_control.revisions (
      generation bigint NOT NULL PRIMARY KEY CHECK (generation > 0),
      version text NOT NULL,
      create_time_us bigint NOT NULL,
      author text NOT NULL,
      comment text NOT NULL,
      origin text NOT NULL
    )""",
    """CREATE TABLE memplane_control.documents (
      generation bigint NOT NULL REFERENCES memplane_control.revisions,
      name text NOT NULL,
      content bytea NOT NULL,
      PRIMARY KEY (generation, name)
    )""",
    """CREATE TABLE memplane_control.api_keys (
      key_id text NOT NULL PRIMARY KEY,
      sha256 text NOT NULL UNIQUE,
      principal text NOT NULL,
      create_time_us bigint NOT NULL,
      expire_time_us bigint,
      description text NOT NULL,
      author text NOT NULL,
      revoke_time_us bigint
    )""",
    """CREATE TABLE memplane_control.answers (
      author text NOT NULL,
      request_id text NOT NULL,
      payload_sha256 text NOT NULL,
      create_time_us bigint NOT NULL,
      answer bytea NOT NULL,
      PRIMARY KEY (author, request_id)
    )""",
    """CREATE TABLE memplane_control.taken_contents (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      version text NOT NULL
    )""",
    """CREATE TABLE memplane_control.folders (
      holder text NOT NULL PRIMARY KEY,
      version text NOT NULL,
      refusal text NOT NULL,
      seen_number bigint NOT NULL
    )""",
)
