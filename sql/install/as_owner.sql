-- Runs a statement as the owner of schema foh, for a role that may act for it. The owner may have attached code to what is in the schema,
-- and after SET ROLE that code could go back to the role of the session. Inside a SECURITY DEFINER function it cannot. The function is
-- made again for each statement, since what ran before could have altered it.
DO {outer}
BEGIN
    PERFORM pg_catalog.set_config('foh.caller_role', pg_catalog.current_setting('role'), true), pg_catalog.set_config('role', {owner}, true);
    CREATE OR REPLACE FUNCTION foh._as_owner(statement pg_catalog.text) RETURNS pg_catalog.void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET check_function_bodies = off
    AS 'BEGIN EXECUTE statement; END';
    PERFORM pg_catalog.set_config('role', pg_catalog.current_setting('foh.caller_role'), true);
    PERFORM foh._as_owner({inner}
{body}
{inner}::pg_catalog.text);
END
{outer}
