-- One statement for all that does not depend on the answer: the state of the index, the weights, the bits of the query and
    -- the nearest centers.
    SELECT m.scale, i.status <> 'ready' OR m.small OR NOT (foh._intact_in_plan({id}, '{source_oid}') OR {source_intact})
               OR EXISTS (SELECT FROM {stream} t WHERE t.center < m.first_center),
           EXISTS (SELECT FROM {stream} t WHERE NOT t.fresh),
           -- Bits alone have nothing to rank a shortlist by.
           CASE WHEN vector IS NULL THEN 0
                ELSE coalesce(shortlist, {shortlist_option}, m.shortlist, CASE WHEN labels * {weights} = 0 THEN {shortlist_nearest} ELSE {shortlist_default} END) END,
           c.probes,
           c.weight_code, labels * coalesce({weight_votes}, m.weight_votes),
           CASE WHEN bits IS NULL THEN {query_geometry} ELSE substring(bits FROM 1 FOR {geometry_bits}) END,
           {signature_zeros} || CASE WHEN bits IS NULL THEN coalesce(p.code, {zeros}) ELSE substring(bits FROM {code_from}) END,
           CASE WHEN bits IS NULL THEN ARRAY(SELECT n.center FROM {nearest_centers}(q.unit, c.probes) n)
                ELSE ARRAY(SELECT n.center FROM {centers_by_bits}(substring(bits FROM 1 FOR {geometry_bits}), c.probes) n) END
    INTO scale, odd, replaced, ranked, probes, weight_code, weight_votes, query_geometry, query_marks, centers
    FROM foh.index i JOIN foh.model m ON m.index = i.id AND m.version = i.version
    CROSS JOIN LATERAL (SELECT coalesce(probes, {probes_option}, m.probes, {probes_default}) AS probes,
                               labels * coalesce({weight_code}, m.weight_code) AS weight_code OFFSET 0) c
    -- Every center is compared with the unit: it is made once.
    CROSS JOIN (SELECT q.u, q.u{center_cast} AS unit FROM (SELECT {query_unit} AS u OFFSET 0) q OFFSET 0) q
    CROSS JOIN {quantizer} g
    -- ctid: the table from end to end, without its index; sequential scans are off for the sake of other tables.
    CROSS JOIN LATERAL (SELECT bit_or(p.mask) AS code FROM {projection} p
                        WHERE bits IS NULL AND {needs_code} AND p.ctid >= '(0,0)'
                          AND -(p.weights OPERATOR({vector}.<#>) vector) >= p.bias) p
    WHERE i.id = {id};
