-- Ends the membership of a role in another one, whoever has granted it. From PostgreSQL 16 on each grant has a grantor, and a plain
-- REVOKE takes back the grants of one grantor only; where another one granted the membership, it warns and does nothing.
CREATE OR REPLACE FUNCTION foh._end_membership(role name, member name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    g record;
BEGIN
    FOR g IN SELECT pg_get_userbyid(m.grantor) AS grantor FROM pg_auth_members m
             WHERE pg_get_userbyid(m.roleid) = role AND pg_get_userbyid(m.member) = _end_membership.member
    LOOP
        EXECUTE format('REVOKE %I FROM %I', role, member)
                || CASE WHEN current_setting('server_version_num')::int >= 160000 THEN format(' GRANTED BY %I', g.grantor) ELSE '' END;
    END LOOP;
END
$function$;
