-- What 0.1.0 made that has another form now: shared tables are altered, the functions that get other arguments are dropped.
DO $foh$
BEGIN
    -- A new database has none.
    IF to_regclass('foh.index_stat') IS NOT NULL THEN
        DROP VIEW foh.index_stat;
    END IF;
    -- An index learns with FOH.
    IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = 'foh.index'::regclass AND a.attname = 'learner') THEN
        ALTER TABLE foh.index DROP COLUMN learner;
    END IF;
END
$foh$;

ALTER TABLE foh.index
    -- Geometry bits of a row; 0 where learned codes stand in for them.
    ADD COLUMN geometry int,
    -- Who may read this table of the index may see this row, and those of the index in the tables below.
    ADD COLUMN stream regclass;
UPDATE foh.index SET
    geometry = CASE WHEN dimensions < 128 THEN (128 + dimensions - 1) / dimensions * dimensions
                    WHEN dimensions <= 1024 THEN dimensions
                    ELSE ceil(dimensions / ceil(dimensions / 1024::float8))::int END,
    -- What was left at its old default follows the new one. What was chosen stays.
    options = '{"dial": 0.5, "weight_code": null, "weight_votes": null, "geometry": null}'::jsonb
              || (options - 'blend')
              || CASE WHEN options -> 'probes' = '3' THEN '{"probes": null}'::jsonb ELSE '{}' END
              || CASE WHEN options -> 'shortlist' = '50' THEN '{"shortlist": null}'::jsonb ELSE '{}' END;
ALTER TABLE foh.index ALTER COLUMN geometry SET NOT NULL;

ALTER TABLE foh.model
    -- The version that made all centers and geometry bits anew, and the first of its centers.
    ADD COLUMN placed bigint NOT NULL DEFAULT 1,
    ADD COLUMN first_center int NOT NULL DEFAULT 1,
    -- At most exact_rows rows: searches may read the table itself.
    ADD COLUMN small boolean NOT NULL DEFAULT true,
    -- How a search ranks: the learned code and the votes of the nearest rows.
    ADD COLUMN weight_code float8 NOT NULL DEFAULT 1.6,
    ADD COLUMN weight_votes float8 NOT NULL DEFAULT 0.4,
    -- How many lists a search reads, by the number of centers or as held-out rows asked for; and how many rows.
    ADD COLUMN probes int,
    ADD COLUMN shortlist int,
    -- Keys of far rows: their embeddings are too long for models and lists (see foh._longest), so every search reads them.
    ADD COLUMN far text[];
-- There is no center until everything is placed again.
UPDATE foh.model m SET placed = i.version, first_center = i.next_center, small = false FROM foh.index i WHERE i.id = m.index;

-- Who asks for something that is done with the rights of foh's owner. A role may write the column source only, so the
-- others say who it is and when: what a function is told as an argument, anybody could say.
CREATE TABLE foh.claim (
    -- A publication of all tables asks for a key.
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source      oid NOT NULL,
    role        name NOT NULL DEFAULT current_user,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id()
);

-- The updater at work on an index: see foh._lock. A row for each index, which only who may update it can lock or change.
CREATE TABLE foh.updating (
    index int PRIMARY KEY,
    pid   int,
    key   bigint,
    role  name,
    -- The partitions of its tables as the last update found them: see foh._follow.
    partitions jsonb
);
INSERT INTO foh.updating (index) SELECT i.id FROM foh.index i;

-- Which functions, views and templates are installed: the digest of the statements that made them, and the version of the
-- package that these came with. One row.
CREATE TABLE foh.code (
    digest  text PRIMARY KEY,
    version text NOT NULL
);

-- The state of a build that was interrupted fits the old lists only.
DELETE FROM foh.model_state WHERE version = 0 AND name IN ('plan', 'plan_learner', 'position');
