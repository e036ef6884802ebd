-- What the objects of an index are called after its name: the tables first, then the functions.
CREATE OR REPLACE FUNCTION foh._suffixes() RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $function$
    SELECT '{projection,center,list,item,stream,place,record,capture,capture_labels,check}'::text[]
$function$;
