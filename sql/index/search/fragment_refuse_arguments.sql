-- The first thing in every search. Reads its arguments query, k, probes, shortlist, labels and recall. It stands here in full since a call
    -- would cost every search.
    -- pgvector may have moved to another schema since this function was made; nothing below would be found then.
    IF pg_catalog.to_regtype({vector_literal}) IS NULL THEN
        PERFORM foh._refuse_changed({name});
    END IF;
    IF query IS NULL OR {vector}.vector_dims(query) OPERATOR(pg_catalog.<>) {dimensions} OR k IS NULL
       OR k OPERATOR(pg_catalog.<) 1 OR probes OPERATOR(pg_catalog.<) 1 OR shortlist OPERATOR(pg_catalog.<) 0
       OR labels OPERATOR(pg_catalog.<) 0::pg_catalog.float8 OR labels OPERATOR(pg_catalog.>) 1::pg_catalog.float8
       OR recall OPERATOR(pg_catalog.<=) 0::pg_catalog.float8 OR recall OPERATOR(pg_catalog.>) 1::pg_catalog.float8 THEN
        PERFORM foh._refuse_search({name}, {dimensions}, {vector}.vector_dims(query), k, probes, shortlist, labels, recall);
    END IF;
