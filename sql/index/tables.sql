-- The tables of an index, and what is in them before any row is known.

-- foh: type key, if record_key
-- A key of several columns, as all tables of the index hold it.
CREATE TYPE {self} AS ({each k# ~});

-- foh: table projection
-- One row per bit of the learned code: the bit of x is 1 where weights . x - bias + (what the labels add) >= 0.
CREATE TABLE {self} (
    bit     int PRIMARY KEY,
    weights {vector}.vector({dimensions}) NOT NULL,
    bias    float8 NOT NULL,
    mask    bit({bits}) NOT NULL
);
-- A short value would be packed, and unpacked again by every comparison.
ALTER TABLE {self} ALTER COLUMN mask SET STORAGE PLAIN;

-- foh: table quantizer
-- How geometry bits are made of a row: one row, which changes only when all lists are made again.
CREATE TABLE {self} (
    -- Tables in a publication FOR ALL TABLES need a primary key.
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- The sign that each number is taken with, before all are turned.
    signs     {vector}.halfvec({turned_numbers}) NOT NULL,
    -- All first thresholds of the turned numbers, then all second ones, and so on.
    threshold {vector}.vector({geometry_bits}) NOT NULL,
    -- For inner products: the length that all rows are brought to by one more number.
    reach     float8 NOT NULL DEFAULT 1
    -- What fits a page stays in it, so that nothing has to be looked up in another table. Signs can be compressed, thresholds cannot.
) WITH (toast_tuple_target = 8160);
ALTER TABLE {self} ALTER COLUMN threshold SET STORAGE MAIN;

-- foh: table area
-- Two levels: a search compares the areas first, then the centers of the nearest areas. Each stands in parts that fit a page: the
-- areas with their bits in area 0, the centers of an area with their bits in the area of that number.
CREATE TABLE {self} (
    area     int NOT NULL,
    part     int NOT NULL,
    ids      int[] NOT NULL,
    geometry bit({geometry_bits})[] NOT NULL,
    PRIMARY KEY (area, part),
    CHECK (cardinality(ids) = cardinality(geometry))
) WITH (toast_tuple_target = 8160);
-- Bits do not compress; reading them must not try.
ALTER TABLE {self} ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN geometry SET STORAGE EXTERNAL;

-- foh: table center
-- What the updater knows of a center beside its bits.
CREATE TABLE {self} (
    center    int PRIMARY KEY,
    length    int NOT NULL DEFAULT 0 CHECK (length >= 0),
    -- The version that last encoded the members, and the share of their bits estimated to have flipped since.
    version   bigint NOT NULL,
    stale     real NOT NULL DEFAULT 0 CHECK (stale BETWEEN 0 AND 1),
    -- The version that last looked whether the members are at home here; 0 where nearer centers were made since.
    checked   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 90);

-- foh: table list
-- Arrays, not rows: a quarter of the bytes, and a fifth of the WAL. A part fits a page (see foh_pg/tables/page_parts.py): nothing that a
-- search reads has to be fetched from TOAST.
CREATE TABLE {self} (
    center   int NOT NULL,
    part     int NOT NULL,
    ids      {key_type}[] NOT NULL,
    geometry bit({geometry_bits})[] NOT NULL,
    -- The signature of the labels, where the index has labels, then the learned code.
    marks    bit({mark_bits})[] NOT NULL,
    {included included_# ~[],}
    PRIMARY KEY (center, part),
    CHECK (cardinality(ids) = cardinality(geometry) AND cardinality(ids) = cardinality(marks))
) WITH (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05,
        toast_tuple_target = 8160);
-- Bits do not compress; reading them must not try.
ALTER TABLE {self} ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN geometry SET STORAGE EXTERNAL,
    ALTER COLUMN marks SET STORAGE EXTERNAL;

-- foh: table sample
-- What only the updater needs to know of a center: the length at which splitting its list was tried in vain, and a few members
-- with their codes as stored, by which the updater sees how stale the list is without reading it.
CREATE TABLE {self} (
    center int PRIMARY KEY,
    tried  int NOT NULL DEFAULT 0,
    ids    {key_type}[] NOT NULL,
    codes  bit({bits})[] NOT NULL
) WITH (fillfactor = 90);

-- foh: table item
-- The way from a deleted or updated key to the list that holds it.
CREATE TABLE {self} (
    key  {key_type} NOT NULL,
    home int NOT NULL,
    {item_key}
    -- Room beside a row for its next home.
) WITH (fillfactor = 90);
-- Tables in a publication FOR ALL TABLES need a primary key, or this.
ALTER TABLE {self} REPLICA IDENTITY FULL;

-- foh: table stream
-- Append-only: queue, memtable and tombstones in one. op: u(psert), d(elete), t(runcate), r(esync: the source must be
-- read again), l(abels: the row's labels in a table of their own changed, or, with version -1, a partition took the row along).
-- An entry is found by its center. Centers below the model's first_center are gone: such entries, and those without bits
-- (version 0, center 0), are read by every search.
CREATE TABLE {self} (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        {key_type},
    op         "char" NOT NULL CHECK (op IN ('u', 'd', 't', 'r', 'l')),
    version    bigint NOT NULL DEFAULT 0,
    -- Null in entries d and l, for which no search looks by a center.
    center     int CHECK (center IS NOT NULL OR op IN ('d', 'l')),
    geometry   bit({geometry_bits}),
    marks      bit({mark_bits}),
    written_at timestamptz NOT NULL DEFAULT now() CHECK (isfinite(written_at)),
    -- True where the entry replaces nothing: no list and no earlier entry has its key, or its op is l.
    {included included_# ~,}
    fresh      boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
        autovacuum_analyze_scale_factor = 0.05, vacuum_truncate = off, toast.vacuum_truncate = off);
-- No further columns: PostgreSQL might scan an index that holds whole entries from end to end, instead of looking up a key.
CREATE INDEX ON {self} (center);
-- Tells whether a key has a newer entry. Texts stand alone: with seq beside it, one as long as a key can be would not fit the index.
-- As a part of a row, it would not even fit alone: there the index holds hashes.
CREATE INDEX ON {self} USING {stream_key};
-- Tells whether any entry replaces another, which TRUNCATE was the last, and whether a resync is due.
CREATE INDEX ON {self} (op, seq) WHERE NOT fresh;

-- foh: table shard, if distributed
-- The shards of a distributed table. inbox: the shard of the inbox beside this one; token: a value of the distribution column that leads
-- to both; first: the least hash of that column in them.
CREATE TABLE {shard} (shard bigint PRIMARY KEY, inbox bigint NOT NULL, token {home ~} NOT NULL, first int NOT NULL);

-- foh: type result
-- What a search returns. A type of its own, so that the key keeps its name even where a parameter has the same name.
CREATE TYPE {self} AS ({each @ ~}, {distance_name} float8, {score_name} float8);

-- foh: script first_model
-- The model before any row is known: random hyperplanes through the origin, the same for the same seed, and thresholds of zero.
INSERT INTO {projection} (bit, weights, bias, mask)
SELECT b.bit, {vector}.l2_normalize(w.weights), 0, set_bit(0::bit({bits}), b.bit, 1)
FROM generate_series(0, {bits} - 1) AS b (bit),
     LATERAL (SELECT array_agg(sqrt(-2 * ln(u.first)) * cos(2 * pi() * u.second) ORDER BY u.at)::{vector}.vector AS weights
              FROM (SELECT n AS at,
                           ((hashint8extended(2 * (b.bit * {dimensions} + n), {seed}) & 9007199254740991) + 1) / 9007199254740992.0::float8 AS first,
                           ((hashint8extended(2 * (b.bit * {dimensions} + n) + 1, {seed}) & 9007199254740991) + 1) / 9007199254740992.0::float8 AS second
                    FROM generate_series(1, {dimensions}) AS n) u) w;
INSERT INTO {quantizer} (signs, threshold)
VALUES (array_fill(1::real, ARRAY[{turned_numbers}])::{vector}.halfvec, array_fill(0::real, ARRAY[{geometry_bits}])::{vector}.vector);
INSERT INTO foh.model (index, version, mean)
VALUES ({id}, 1, array_fill(0::real, ARRAY[{dimensions}])::{vector}.vector);

-- foh: script change_marks
-- Labels were added to the index or removed from it, which changes the length of the marks: lists and stream are emptied.
-- Searches read the source until an update has read it again.
DELETE FROM {list};
DELETE FROM {item};
DELETE FROM {sample};
DELETE FROM {center};
DELETE FROM {area};
DELETE FROM {stream};
ALTER TABLE {list} ALTER COLUMN marks TYPE bit({mark_bits})[] USING array_fill(NULL::bit({mark_bits}), ARRAY[0]);
ALTER TABLE {stream} ALTER COLUMN marks TYPE bit({mark_bits}) USING NULL;
