#!/bin/sh
# Runs once, when the database of compose.yaml is made: pgvector, and an ordinary role that owns the application's tables.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$SHOP_PASSWORD" --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE EXTENSION vector;
CREATE ROLE shop LOGIN PASSWORD :'password';
GRANT CREATE ON SCHEMA public TO shop;
SQL
