-- The tables that all indexes share. Those of one index are made by foh.create_index (sql/index/tables.sql).

CREATE TABLE foh.index (
    id               int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name             text NOT NULL UNIQUE CHECK (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    -- regclass follows renames and is dumped as a name; the oid beside it tells a restored database, where
    -- attribute numbers may have changed, from the one the index was created in.
    source           regclass NOT NULL,
    source_oid       oid NOT NULL,
    source_name      text NOT NULL,
    -- A key may have several columns.
    key              name[] NOT NULL,
    key_attnum       int2[] NOT NULL,
    key_types        regtype[] NOT NULL,
    embedding        name NOT NULL,
    embedding_attnum int2 NOT NULL,
    embedding_type   text NOT NULL,
    embedding_typmod int NOT NULL,
    labels           name,
    labels_attnum    int2,
    labels_type      text,
    labels_from      regclass,
    labels_from_oid  oid,
    labels_from_name text,
    labels_key       name[],
    labels_key_attnum int2[],
    -- Columns that lists and stream keep beside each row, for conditions of searches: an array of objects, see foh._inspect_included.
    included         jsonb NOT NULL DEFAULT '[]',
    dimensions       int NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    -- Geometry bits of a row; 0 where learned codes stand in for them.
    geometry         int NOT NULL,
    bits             int NOT NULL CHECK (bits BETWEEN 8 AND 1024),
    distance         text NOT NULL CHECK (distance IN ('cosine', 'l2', 'ip')),
    options          jsonb NOT NULL,
    row_triggers     boolean NOT NULL,
    -- The fence of every updater: UPDATE ... SET version = new WHERE version = old.
    version          bigint NOT NULL DEFAULT 1,
    status           text NOT NULL CHECK (status IN ('building', 'ready')),
    -- Ids of centers are never used again, so the next one cannot be told from those there are.
    next_center      int NOT NULL DEFAULT 1,
    created_at       timestamptz NOT NULL DEFAULT now(),
    CHECK ((labels IS NULL) = (labels_type IS NULL)),
    CHECK ((labels_from IS NULL) = (labels_key IS NULL))
);

-- A row of the description of the tables and columns that an index reads: see sql/shared/drift.sql. at: its place in the description.
-- role: source or labels_from, a table; key, embedding, labels or labels_key, a column. number: of the column, 0 for a table.
CREATE TYPE foh.described AS (
    at       int,
    role     text,
    relation oid,
    number   int2,
    name     text,
    type     text
);

-- The dictionary of label names, and what a label adds to the projections of a stored row: one number a bit.
CREATE TABLE foh.label (
    index      int NOT NULL,
    label      int NOT NULL,
    name       text NOT NULL,
    projection @vector@.vector,
    PRIMARY KEY (index, label),
    -- The name first: see the function place in sql/index/write.sql.
    UNIQUE (name, index)
);

CREATE TABLE foh.model (
    index      int NOT NULL,
    version    bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    trained    boolean NOT NULL DEFAULT false,
    -- The version whose hash functions these are: a run that only merges rows makes a version, but no model.
    learned    bigint NOT NULL DEFAULT 1,
    mean       @vector@.vector NOT NULL,
    -- A typical distance of a row from the mean: brings l2 and ip to the size of a cosine distance.
    scale      float8 NOT NULL DEFAULT 1,
    metrics    jsonb NOT NULL DEFAULT '{}',
    -- The version that made all centers and geometry bits, and the first of its centers.
    placed       bigint NOT NULL DEFAULT 1,
    first_center int NOT NULL DEFAULT 1,
    -- At most exact_rows rows: searches may read the table itself.
    small        boolean NOT NULL DEFAULT true,
    -- The ranking as it was chosen on held-out rows, for as many centers as there were then. What follows is the same for
    -- the centers of this version, as searches read it.
    ranking      jsonb NOT NULL DEFAULT '{}',
    -- How a search ranks: how much the learned code counts in telling the kind of the query, and by how many times its
    -- distance a row of another kind is put back.
    weight_code  float8 NOT NULL DEFAULT 0.2,
    weight_votes float8 NOT NULL DEFAULT 1.0,
    -- How many lists a search reads, by the number of centers or as held-out rows asked for; and how many rows. The same
    -- where labels do not count.
    probes       int,
    shortlist    int,
    nearest_probes    int,
    nearest_shortlist int,
    -- The recall of the ten nearest that held-out rows found with so many probes and rows read, the lowest first.
    reach_recall    float8[],
    reach_probes    int[],
    reach_shortlist int[],
    -- The chance of a label, learned on held-out rows: 1 / (1 + exp(-z)), where z is the first number, plus the second times the logarithm of
    -- the label's share of the votes, plus the third times how far the learned code leans to it. Null where none was asked.
    chances         float8[],
    -- Keys of far rows: their embeddings are too long for models and lists (see foh._longest), so every search reads them.
    far          text[],
    PRIMARY KEY (index, version)
);

-- What an updater must remember, in pieces that any dump can carry: by the version that learned it the state of the learner
-- (learner), and a model that is no longer served (served), for a rollback; under version 0 what changes with every run (progress), and what a
-- build needs to go on after it was interrupted (build).
CREATE TABLE foh.model_state (
    index   int NOT NULL,
    version bigint NOT NULL,
    name    text NOT NULL,
    chunk   int NOT NULL,
    data    bytea NOT NULL,
    digest  bytea NOT NULL,
    PRIMARY KEY (index, version, name, chunk)
);
ALTER TABLE foh.model_state ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE foh.run (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    index        int NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('build', 'rebuild', 'rollback', 'update', 'evaluate')),
    -- Within what clients can show: Python has no year 10 000, and no program has infinity.
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (started_at > '1970-01-01Z' AND started_at < '9000-01-01Z'),
    finished_at  timestamptz CHECK (finished_at > '1970-01-01Z' AND finished_at < '9000-01-01Z'),
    from_version bigint NOT NULL DEFAULT 1,
    to_version   bigint,
    rows         bigint NOT NULL DEFAULT 0 CHECK (rows >= 0),
    lists        bigint NOT NULL DEFAULT 0 CHECK (lists >= 0),
    rows_encoded bigint NOT NULL DEFAULT 0 CHECK (rows_encoded >= 0),
    stale        float8 CHECK (stale BETWEEN 0 AND 1),
    -- Seconds by the name of a phase.
    phases       jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(phases) = 'object' AND NOT phases @? '$.* ? (@.type() <> "number" || @ > 1e12)'),
    metrics      jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metrics) = 'object'),
    error        text
);
CREATE INDEX run_index_idx ON foh.run (index, id);

-- The updater at work on an index: see foh._lock. A row for each index, which only a role that may update it can lock or change.
CREATE TABLE foh.updating (
    index int PRIMARY KEY,
    pid   int,
    key   bigint,
    role  name,
    -- The partitions of its tables as the last update found them: see foh._follow.
    partitions jsonb
);

-- The SQL of the objects of one index, with {placeholders}; filled from sql/index/ by the migrations. kind: table, type or function; node, a
-- function on every node of Citus; fragment, a placeholder of others; script, run when it is due. shared: a function of all indexes, which
-- is here only for its callers: the kinds of roles that may call the function besides the owner of the schema. condition: the kind of index
-- that this template is for; where several have a name, the one without a condition is for all others.
CREATE TABLE foh.template (
    name      text NOT NULL,
    condition text NOT NULL CHECK (condition IN ('', 'labels', 'labels_from', 'record_key', 'row_triggers', 'distributed')),
    kind      text NOT NULL CHECK (kind IN ('table', 'type', 'function', 'node', 'fragment', 'script', 'shared')),
    callers   text[] NOT NULL CHECK (callers <@ '{reader,updater}'),
    -- The order in which they stand in the files.
    at        int NOT NULL,
    body      text NOT NULL,
    PRIMARY KEY (name, condition, kind)
);

-- Which functions, views and templates are installed: the digest of the statements that made them, and the version of the
-- package that these came with. One row.
CREATE TABLE foh.code (
    digest  text PRIMARY KEY,
    version text NOT NULL
);
