-- What explain says of the recall of a search: what was asked for, and what held-out rows reached with so many probes and rows read.
CREATE OR REPLACE FUNCTION foh._recall_text(target float8, recalls float8[], probes int[], shortlists int[], probed int, ranked int) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT concat_ws('; ', format('%s wanted', target),
                     CASE WHEN recalls IS NULL THEN 'not measured yet: the next build or update measures it'
                          WHEN reached IS NULL THEN 'less than was ever measured'
                          ELSE format('%s of the ten nearest expected without labels', round(reached::numeric, 3)) END,
                     CASE WHEN reached < target THEN 'more would cost too much: say recall, probes or shortlist to have it nevertheless' END)
    FROM (SELECT max(r.recall) AS reached FROM unnest(recalls, probes, shortlists) AS r (recall, probes, shortlist)
          WHERE r.probes <= probed AND r.shortlist <= ranked) r
$function$;
