-- What each kind of role may do in foh, and what that lets it see: the words that foh.grant returns.
CREATE OR REPLACE FUNCTION foh._right(kind text, revoke boolean) RETURNS TABLE (may text, exposes text)
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT CASE WHEN revoke THEN 'nothing of this any more: ' ELSE '' END || t.may, CASE WHEN NOT revoke THEN t.exposes END
    FROM (VALUES
        ('reader', 'search, with its own rights on the table',
         'what a search returns; and, where a role calls the inner step (_near) itself, keys and Hamming distances of rows that row-level security hides; no table of foh'),
        ('writer', 'write its table: the triggers need no rights in foh', 'nothing'),
        ('updater', 'build, update, roll back, evaluate, check and repair the index',
         'all of the index: keys, codes, labels, embeddings of centers; and, through its functions, key, embedding and labels of all rows of the table, row-level security or not; nothing of other indexes'),
        ('owner', 'create, alter and drop indexes on its own tables, and all that an updater may there',
         'nothing of the indexes of others')
    ) AS t (kind, may, exposes) WHERE t.kind = $1
$function$;
