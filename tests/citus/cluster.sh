#!/bin/bash
# A Citus coordinator and two workers on 127.0.0.1, for the tests of this folder. Citus and pgvector have to be installed.
#
#     export BIN=/usr/lib/postgresql/18/bin DATA=/tmp/citus
#     tests/citus/cluster.sh start && export FOH_TEST_CITUS_DSN=$(tests/citus/cluster.sh dsn)
#     pytest tests/citus
#     tests/citus/cluster.sh stop
set -eu

BIN=${BIN:?the directory of initdb and pg_ctl, of a PostgreSQL that has Citus and pgvector}
DATA=${DATA:?a directory for data, logs and sockets}
FIRST_PORT=${FIRST_PORT:-6540}
NODES=(coordinator worker1 worker2)

# A server does not start as root.
as_server() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$DATA" "$@"; else "$@"; fi
}

initialize() { # the number of a node
    local directory=$DATA/${NODES[$1]}
    mkdir -p "$DATA"
    [ "$(id -u)" != 0 ] || chown postgres:postgres "$DATA"
    as_server "$BIN/initdb" -D "$directory" -U postgres --auth=trust -E UTF8 --locale=C.UTF-8 --no-sync > "$DATA/${NODES[$1]}.initdb"
    cat >> "$directory/postgresql.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $((FIRST_PORT + $1))
unix_socket_directories = '$DATA'
shared_preload_libraries = 'citus'
citus.enable_statistics_collection = off
citus.node_conninfo = 'sslmode=disable'
fsync = off
shared_buffers = 256MB
max_connections = 200
max_prepared_transactions = 200
max_wal_size = 4GB
# Shards move by logical replication.
wal_level = logical
SETTINGS
}

each() { for number in 0 1 2; do "$@" $number; done; }
start_one() {
    [ -e "$DATA/${NODES[$1]}/PG_VERSION" ] || initialize "$1"
    as_server "$BIN/pg_ctl" -D "$DATA/${NODES[$1]}" -l "$DATA/${NODES[$1]}.log" -w start > /dev/null
}
stop_one() { as_server "$BIN/pg_ctl" -D "$DATA/${NODES[$1]}" -m fast -w stop > /dev/null || true; }

case ${1:-} in
    start) each start_one ;;
    stop) each stop_one ;;
    dsn) echo "host=127.0.0.1 port=$FIRST_PORT user=postgres dbname=postgres" ;;
    *) echo "start | stop | dsn"; exit 2 ;;
esac
