-- What a search finds, with the rights of the table's owner, for an updater that measures the index. step says what to return.
-- answer: the rows of the answer. The other steps return what a search has on the way to it, or null where the lists cannot
-- answer. lists: all rows of the probed lists. bits: the nearest rows by geometry bits, among which the labels then choose.
-- shortlist: the rows whose exact distance is computed.
CREATE OR REPLACE FUNCTION {answer}(query {vector}.vector, k int, step text DEFAULT 'answer') RETURNS {key_type}[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET row_security = off
AS $body$
BEGIN
    PERFORM foh._open({tables_text});
    IF step = 'lists' THEN
        RETURN (SELECT n.keys FROM {near}(query, 10000000, NULL, 0, NULL, 0, 1, false) n);
    ELSIF step = 'bits' THEN
        RETURN (SELECT n.keys FROM {near}(query, k, NULL, NULL, NULL, {dial_factor}(NULL), 1, false) s,
                                   {near}(query, greatest({looked}, {looked_times} * greatest(k, s.ranked)), s.probes, 0, NULL, 0, 1, false) n);
    ELSIF step = 'shortlist' THEN
        RETURN (SELECT n.keys FROM {near}(query, k, NULL, NULL, NULL, {dial_factor}(NULL), 1, false) n);
    END IF;
    RETURN ARRAY(SELECT r.{key} FROM {search}(query, k) r);
END
$body$;
