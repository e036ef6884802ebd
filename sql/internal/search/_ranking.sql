-- What the ranking of a search is made of, where the model or an option of the index does not say otherwise. PostgreSQL and Python
-- (foh_pg/tables/ranking.py) read the same numbers here.
-- looked, looked_times: how many of the nearest rows by bits the labels choose among, at least and for each row wanted. voters: how many of
-- them vote. probes_default, shortlist_default: lists and rows that a search reads before held-out rows were asked. weight_code_default,
-- weight_votes_default: how much the learned code counts beside the bits in the choice of voters, and by how many times its distance a row
-- of another kind is put back. recall_default: the share of the nearest rows that is wanted where labels do not count.
-- probe_cost: to read a list costs as much as to read so many rows. cost_labels, cost_nearest: how much a search may cost, in rows read.
CREATE OR REPLACE FUNCTION foh._ranking() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT '{
        "looked": 100, "looked_times": 3, "voters": 9,
        "probes_default": 32, "shortlist_default": 30,
        "weight_code_default": 0.2, "weight_votes_default": 1.0,
        "recall_default": 0.95, "probe_cost": 2, "cost_labels": 78, "cost_nearest": 170
    }'::jsonb
$function$;
