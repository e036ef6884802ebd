-- The role belongs to the cluster: it stays while another database uses it, or where the caller may not drop it. Two databases that
-- migrate at once may each wait for the other here.
DO $foh$
DECLARE
    vector_schema name;
BEGIN
    SELECT n.nspname INTO vector_schema
    FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector';
    IF vector_schema IS NOT NULL AND EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'foh_owner') THEN
        EXECUTE pg_catalog.format('REVOKE USAGE ON SCHEMA %I FROM foh_owner', vector_schema);
    END IF;
    DROP ROLE IF EXISTS foh_owner;
EXCEPTION
    WHEN dependent_objects_still_exist OR insufficient_privilege OR object_in_use OR deadlock_detected THEN
        RAISE NOTICE 'the role foh_owner stays: %', SQLERRM;
END
$foh$;
