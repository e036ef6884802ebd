-- Fills the {placeholders} of a template in one pass: a column named "{source}" stays what it is. Names of columns and tables may have
-- anything in them. So nothing is filled in a comment, which a line break in a name would end; and the quotes $body$ and $sql$ of the
-- template get a tag that is in no name.
CREATE OR REPLACE FUNCTION foh._render(template text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $function$
DECLARE
    missing text;
    tag text := '';
BEGIN
    SELECT string_agg(DISTINCT m[1], ', ') INTO missing
    FROM string_to_table(template, E'\n') line, regexp_matches(line, '\{([a-z_0-9]+)\}', 'g') AS m
    WHERE NOT starts_with(ltrim(line), '--') AND NOT names ? m[1];
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'foh: a template asks for unknown names: %', missing;
    END IF;
    WHILE EXISTS (SELECT FROM jsonb_each_text(names) n WHERE strpos(n.value, '$body' || tag || '$') > 0 OR strpos(n.value, '$sql' || tag || '$') > 0) LOOP
        tag := tag || 'x';
    END LOOP;
    template := replace(replace(template, '$body$', '$body' || tag || '$'), '$sql$', '$sql' || tag || '$');
    RETURN (SELECT string_agg(CASE WHEN starts_with(ltrim(t.line), '--') THEN t.line ELSE coalesce((
                       SELECT string_agg(coalesce(names ->> substring(m[1] FROM '^\{([a-z_0-9]+)\}$'), m[1]), '' ORDER BY n)
                       FROM regexp_matches(t.line, '(\{[a-z_0-9]+\}|[^{]+|\{)', 'g') WITH ORDINALITY AS p (m, n)), '') END, E'\n' ORDER BY t.number)
            FROM string_to_table(template, E'\n') WITH ORDINALITY AS t (line, number));
END
$function$;
