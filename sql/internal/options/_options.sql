-- The table of options: the one place for the default of each, the values it may have, when a change takes effect, and what
-- the documentation says of it. A default of null means that the value is chosen from the data. takes_effect: now, with the
-- next statement; update, with the next update; rebuild, with the next rebuild; create, it is never changed.
CREATE OR REPLACE FUNCTION foh._options()
RETURNS TABLE (name text, standard jsonb, nullable boolean, whole boolean, low numeric, high numeric, words text[], takes_effect text, meaning text)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    VALUES
    ('probes', 'null'::jsonb, true, true, 1::numeric, 1e6, NULL::text[], 'now',
     'lists that a search reads; null: as chosen on held-out rows, else by the number of centers'),
    ('shortlist', 'null', true, true, 0, 1e5, NULL, 'now',
     'rows ranked with the exact distance; 0: none, by bits alone; null: as chosen on held-out rows, else 30'),
    ('recall', 'null', true, false, 0.01, 0.999, NULL, 'now',
     'share of the ten nearest rows that a search shall find; probes and shortlist follow from it, as measured on held-out rows. null: 0.95 where labels do not count, unless that costs too much'),
    ('dial', '0.5', false, false, 0, 1, NULL, 'now',
     'how much labels count in a search that does not say: 0 nothing, 0.5 as learned, 1 more than distance'),
    ('weight_code', 'null', true, false, 0, 1e3, NULL, 'now',
     'how much the learned code counts in the choice of the rows that tell the kind of the query; null: as learned on held-out rows'),
    ('weight_votes', 'null', true, false, 0, 1e3, NULL, 'now',
     'by how many times its distance a row of another kind than the query is put back; null: as learned'),
    ('exact_rows', '1000', false, true, 0, 1e9, NULL, 'now',
     'an untrained index up to this size is searched exactly'),
    ('geometry', 'null', true, true, 1, 16000, NULL, 'create',
     'geometry bits of a row; null: by the dimensions'),
    ('centers', 'null', true, true, 1, 1e6, NULL, 'update',
     'number of centers; null: about rows ^ (2/3)'),
    ('homes', '1', false, true, 0, 16, NULL, 'update',
     'lists a row is in, its nearest centers. 0: only the `neighbors` of each center are listed, a row may be in no list, and a search that finds fewer than k rows there reads the table'),
    ('neighbors', '0', false, true, 0, 1e6, NULL, 'update',
     'rows that a center holds besides, its nearest: the pool of the paper with `homes` 0'),
    ('label_weight', '1.0', false, false, 0, 1e6, NULL, 'update',
     'how far stored codes lean on the labels of their rows; 0: the symmetric codes of the paper'),
    ('max_stale', '0.01', false, false, 0, 1, NULL, 'update',
     'share of flipped bits above which a list is encoded again'),
    ('budget', 'null', true, true, 1, 1e12, NULL, 'update',
     'rows encoded again in one run at the most'),
    ('forget', '1.0', false, false, 0.01, 1, NULL, 'update',
     'what a version keeps of the sums of the one before; below 1 old rows count less and less'),
    ('learn_rows', '2000', false, true, 1, 1e7, NULL, 'update',
     'new labelled rows that make a step of learning'),
    ('held_out', '0.02', false, false, 0, 0.5, NULL, 'update',
     'share of rows, by a hash of the key, that never train'),
    ('keep_versions', '3', false, true, 1, 100, NULL, 'update',
     'models that `foh-pg rollback` can return to'),
    ('triggers', '"auto"', false, NULL, NULL, NULL, '{auto,statement,row,always}', 'now',
     'auto, statement, row, or always (row triggers that fire on replication too)'),
    ('seed', '0', false, true, 0, 4294967295, NULL, 'rebuild',
     'of the first hash functions and of the learner')
$function$;
