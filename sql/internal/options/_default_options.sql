-- Every option of an index and its default; null means: chosen from the data.
CREATE OR REPLACE FUNCTION foh._default_options() RETURNS jsonb
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT jsonb_build_object(
        'centers', null,          -- number of centers; null: about rows ^ (2/3)
        'homes', 1,               -- lists a row is in, its nearest centers
        'neighbors', 0,           -- rows that a center holds besides, its nearest (the pool of the paper)
        'probes', null,           -- lists that a search reads; null: as chosen on held-out rows, else 7
        'shortlist', null,        -- rows ranked with the exact distance; 0: by bits alone; null: as chosen, else 16
        'dial', 0.5,              -- how much labels count in a search: 0 nothing, 0.5 as learned, 1 more than distance
        'weight_code', null,      -- weights of the ranking; null: as learned on held-out rows
        'weight_linear', null,
        'weight_votes', null,
        'geometry', null,         -- geometry bits of a row; 0: none, learned codes alone; null: by the dimensions
        'label_weight', 1.0,      -- how far stored codes lean on their labels
        'max_stale', 0.01,        -- share of flipped bits above which a list is encoded again
        'forget', 1.0,            -- what a version keeps of the sums of the one before
        'memory', 20000,          -- past rows that take part in learning
        'max_labels', 1000,       -- labels that take part in learning, by frequency
        'similarity', 'auto',     -- auto, equal, graded or shared
        'learn_rows', 2000,       -- new labelled rows that make a stage
        'held_out', 0.02,         -- share of rows, by a hash of the key, that never train
        'margin', 0.02,           -- how much worse a new model may be on held-out rows; null: no such test
        'keep_versions', 3,       -- models that rollback can return to
        'budget', null,           -- rows encoded again in one run at the most
        'exact_rows', 1000,       -- an untrained index up to this size is searched exactly
        'triggers', 'auto',       -- auto, statement, row, or always (row triggers that fire on replication too)
        'seed', 0                 -- of the first hash functions and of the learner
    )
$function$;
