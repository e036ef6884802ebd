-- What a client must know of the index to call its functions; open to its readers, who may not read foh.index.
CREATE OR REPLACE FUNCTION {describe}()
RETURNS TABLE (source text, key text, key_type text, embedding text, labels text, dimensions int, bits int, distance text,
               version bigint, vector_schema text, vector_type oid)
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $body$
    SELECT i.source_name, i.key::text, i.key_type::text, i.embedding::text, i.labels::text, i.dimensions, i.bits, i.distance,
           i.version, n.nspname::text, t.oid
    FROM foh.index i, pg_extension e
    JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'vector'
    WHERE i.id = {id} AND e.extname = 'vector'
$body$;
