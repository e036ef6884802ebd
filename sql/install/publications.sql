-- A publication FOR ALL TABLES cannot leave a schema out, so it publishes our tables too.
DO $foh$
DECLARE
    found text := (SELECT string_agg(quote_ident(p.pubname), ', ' ORDER BY p.pubname) FROM pg_publication p WHERE p.puballtables);
BEGIN
    IF found IS NOT NULL THEN
        RAISE WARNING 'publication % is FOR ALL TABLES, and so publishes those of schema foh: a subscriber without them stops applying', found
            USING HINT = 'Publish the schemas of the application instead: CREATE PUBLICATION ... FOR TABLES IN SCHEMA ...; see docs/operations.md.';
    END IF;
END
$foh$;
