-- The server process of the updater at work on an index; null where there is none. What foh.updating says holds for as long as
-- that process, of that role, has the advisory lock of that random key. Another process cannot pretend: it may take
-- the same key, but it is another process; or have the same number later, but not in a session of the same role.
CREATE OR REPLACE FUNCTION foh._holder(index int) RETURNS int
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT u.pid FROM foh.updating u
    WHERE u.index = $1
      AND EXISTS (SELECT FROM pg_locks l
                  WHERE l.locktype = 'advisory' AND l.granted AND l.pid = u.pid AND l.objsubid = 1
                    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                    AND l.classid = ((u.key >> 32) & 4294967295)::oid AND l.objid = (u.key & 4294967295)::oid)
      AND EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = u.pid AND a.usename = u.role)
$function$;
