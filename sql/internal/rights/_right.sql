-- What each right lets a role do in foh, and what it lets the role see: the words that foh.grant returns.
CREATE OR REPLACE FUNCTION foh._right(kind text, revoke boolean) RETURNS TABLE (may text, exposes text)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN revoke THEN 'nothing of this any more: ' ELSE '' END || t.may, CASE WHEN NOT revoke THEN t.exposes END
    FROM (VALUES
        ('reader', 'search, with its own rights on the table',
         'what a search returns; and, if the role calls the inner step (_near) itself, keys of rows that row-level security hides, and how near they are; no table of foh'),
        ('updater', 'build, update, roll back, evaluate, check and repair all indexes',
         'all indexes: keys, codes, labels, centers; and, through their functions, key, embedding and labels of all rows of their tables, row-level security or not; it can lock tables of foh and so stop searches')
    ) AS t (kind, may, exposes) WHERE t.kind = $1
$function$;
