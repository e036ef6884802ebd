-- Fills the {placeholders} of a template in one pass: a column named "{source}" stays what it is.
CREATE OR REPLACE FUNCTION foh._render(template text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    missing text;
    filled text;
BEGIN
    SELECT string_agg(DISTINCT m[1], ', ') INTO missing
    FROM regexp_matches(template, '\{([a-z_0-9]+)\}', 'g') AS m
    WHERE NOT names ? m[1];
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'foh: a template asks for unknown names: %', missing;
    END IF;
    IF EXISTS (SELECT FROM jsonb_each_text(names) n WHERE n.value ~ '\$(body|sql)\$') THEN
        RAISE EXCEPTION 'foh: a name with $body$ or $sql$ in it cannot be used' USING ERRCODE = 'invalid_name';
    END IF;
    SELECT string_agg(coalesce(names ->> substring(m[1] FROM '^\{([a-z_0-9]+)\}$'), m[1]), '' ORDER BY n) INTO filled
    FROM regexp_matches(template, '(\{[a-z_0-9]+\}|[^{]+|\{)', 'g') WITH ORDINALITY AS t (m, n);
    RETURN filled;
END
$function$;
