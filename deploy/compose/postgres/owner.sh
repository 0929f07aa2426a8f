#!/bin/sh
# Runs once, when the database server is laid: the database and the role that owns it. `memplane migrate` logs in as that
# role and makes the two roles of the data planes; MemPlane never uses the superuser. The extension is made where the
# image has it, for only a superuser may.
set -eu

psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$MEMPLANE_OWNER_PASSWORD" --username=postgres <<'SQL'
CREATE ROLE memplane_owner LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE memplane OWNER memplane_owner TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
\connect memplane
SELECT 'CREATE EXTENSION vector' FROM pg_available_extensions WHERE name = 'vector' \gexec
SQL
