-- Where each column that the index reads stands now: by attribute number, or by name in a restored database, where
-- the numbers may have moved. usable: still there, of the recorded type and under the recorded name.
-- No SET search_path: all callers set one. A function with a setting of its own is not inlined, which would slow searches down.
CREATE OR REPLACE FUNCTION foh._columns(i foh.index)
RETURNS TABLE (role text, recorded name, present name, attnum int2, type oid, typmod int, usable boolean)
LANGUAGE sql STABLE
AS $function$
    SELECT c.role, c.recorded, a.attname, a.attnum, a.atttypid, a.atttypmod,
           coalesce(a.attname = c.recorded AND CASE c.role
               WHEN 'key' THEN a.atttypid = i.key_type
               WHEN 'embedding' THEN a.atttypmod = i.embedding_typmod AND foh._embedding_type(a.atttypid) = i.embedding_type
               WHEN 'labels' THEN format_type(a.atttypid, NULL) = i.labels_type
               ELSE true END, false)
    FROM (VALUES ('key', i.source::oid, i.source_oid, i.key, i.key_attnum),
                 ('embedding', i.source, i.source_oid, i.embedding, i.embedding_attnum),
                 ('labels', coalesce(i.labels_from, i.source), coalesce(i.labels_from_oid, i.source_oid), i.labels, i.labels_attnum),
                 ('labels_key', i.labels_from, i.labels_from_oid, i.labels_key, i.labels_key_attnum)
         ) AS c (role, relation, relation_oid, recorded, attnum)
    LEFT JOIN pg_attribute a ON a.attrelid = c.relation AND NOT a.attisdropped AND a.attnum > 0
         AND CASE WHEN c.relation = c.relation_oid THEN a.attnum = c.attnum ELSE a.attname = c.recorded END
    WHERE c.recorded IS NOT NULL
$function$;
