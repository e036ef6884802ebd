-- What the objects of an index are called after its name: the tables first, then the functions.
CREATE OR REPLACE FUNCTION foh._suffixes() RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $function$
    SELECT ARRAY[
        'projection',
        'quantizer',
        'area',
        'center',
        'list',
        'sample',
        'item',
        'stream',
        'shard',
        'place',
        'record',
        'intact',
        'capture',
        'capture_labels',
        'check',
        'repair',
        'follow',
        'result',
        'search',
        'candidates',
        'explain',
        'near',
        'nearest_centers',
        'state',
        'exact',
        'exact_distance',
        'score',
        'bit_score',
        'dial_factor',
        'describe',
        'rows',
        'unchanged',
        'answer',
        'label_counts',
        -- Of distributed tables alone: see sql/index/citus.
        'pull',
        'pulled',
        'inbox_stat',
        'inbox_keys',
        'source_rows',
        'record_shards',
        'moment'
    ]
$function$;
