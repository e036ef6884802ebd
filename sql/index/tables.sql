-- One row per bit: 1 where weights . x - bias + (what the labels add) >= 0.
CREATE TABLE {projection} (
    bit     int PRIMARY KEY,
    weights {vector}.vector({dimensions}) NOT NULL,
    bias    float8 NOT NULL,
    mask    bit({bits}) NOT NULL
);
CREATE TABLE {center} (
    center    int PRIMARY KEY,
    code      bit({bits}) NOT NULL,
    embedding {center_type} NOT NULL,
    length    int NOT NULL DEFAULT 0,
    -- The version that last encoded the members, and the share of their bits estimated to have flipped since.
    version   bigint NOT NULL,
    stale     real NOT NULL DEFAULT 0
) WITH (fillfactor = 90);
-- The codes of centers tie a lot. A search compares every code once: of hundreds of centers, dozens of codes, a page.
CREATE TABLE {center_code} (
    code bit({bits}) PRIMARY KEY
);
-- Centers that a version did away with, for the entries of the stream that still name them.
CREATE TABLE {gone} (
    version bigint NOT NULL,
    center  int NOT NULL,
    PRIMARY KEY (version, center)
);
-- A short code would be packed, and unpacked again by every comparison.
ALTER TABLE {projection} ALTER COLUMN mask SET STORAGE PLAIN;
ALTER TABLE {center} ALTER COLUMN code SET STORAGE PLAIN;
ALTER TABLE {center_code} ALTER COLUMN code SET STORAGE PLAIN;
-- Then it reads the centers of the nearest codes, which lie side by side here.
CREATE INDEX {center_code_idx} ON {center} (code){center_included};
-- Arrays, not rows: 25-34 bytes an entry against 110, and a fifth of the WAL.
CREATE TABLE {list} (
    center int NOT NULL,
    part   int NOT NULL,
    ids    {key_type}[] NOT NULL,
    codes  bit({bits})[] NOT NULL,
    -- Codes tie a lot, and equal ones stand side by side: the runs of equal codes, and where each begins and ends. A
    -- search compares runs, and unfolds the nearest.
    starts int[] GENERATED ALWAYS AS (foh._run_starts(codes)) STORED,
    ends   int[] GENERATED ALWAYS AS (foh._run_ends(codes)) STORED,
    runs   bit({bits})[] GENERATED ALWAYS AS (foh._runs(codes)) STORED,
    PRIMARY KEY (center, part),
    CHECK (cardinality(ids) = cardinality(codes))
) WITH (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
-- Codes do not compress; reading them must not try.
ALTER TABLE {list} ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN codes SET STORAGE EXTERNAL,
    ALTER COLUMN starts SET STORAGE EXTERNAL, ALTER COLUMN ends SET STORAGE EXTERNAL, ALTER COLUMN runs SET STORAGE EXTERNAL;
-- What only the updater asks of a center: the row it was made of, its priority in the sample of the stream that centers
-- are, the length at which splitting its list was tried in vain, and a few members with their codes as stored, by which
-- it sees how stale the list is without reading it.
CREATE TABLE {sample} (
    center   int PRIMARY KEY,
    key      {key_type} NOT NULL,
    priority float8 NOT NULL,
    tried    int NOT NULL DEFAULT 0,
    ids      {key_type}[] NOT NULL,
    codes    bit({bits})[] NOT NULL
) WITH (fillfactor = 80);
-- The way from a deleted or updated key to the lists that hold it.
CREATE TABLE {item} (
    key    {key_type} PRIMARY KEY,
    home   int NOT NULL,
    others int[]
) WITH (fillfactor = 90);
-- Append-only: queue, memtable and tombstones in one. op: u(psert), d(elete), t(runcate), r(esync: the
-- source must be read again).
-- version 0 marks an entry without a code, which every search reads. One of an older version is read with its center, or
-- everywhere once that is gone.
CREATE TABLE {stream} (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        {key_type},
    op         "char" NOT NULL CHECK (op IN ('u', 'd', 't', 'r')),
    version    bigint NOT NULL,
    center     int NOT NULL,
    code       bit({bits}),
    written_at timestamptz NOT NULL DEFAULT now(),
    -- The first that the index hears of this key: no list has it, and no earlier entry.
    fresh      boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_analyze_scale_factor = 0.05);
-- Entries of the probed centers, and of older versions, without reading the rest. Those of a center lie all over the
-- table: what a search asks of them is in the index, once autovacuum has been there.
CREATE INDEX {stream_center_idx} ON {stream} (version, center){stream_included};
-- Whether a key has a newer entry than the one in hand.
CREATE INDEX {stream_key_idx} ON {stream} (key, seq);
-- Whether there is an entry that replaces another; the last TRUNCATE, and whether a resync is due.
CREATE INDEX {stream_known_idx} ON {stream} (op, seq) WHERE NOT fresh;
-- What a search returns. A type of its own: the key keeps its name, even one that is also a parameter's.
CREATE TYPE {result} AS ({key} {key_type}, {distance_name} int, {score_name} float8);
