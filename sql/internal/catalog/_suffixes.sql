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
        'place',
        'record',
        'intact',
        'capture',
        'capture_labels',
        'check',
        'repair',
        'result',
        'search',
        'search_code',
        'candidates',
        'encode',
        'explain',
        'near',
        'nearest_centers',
        'centers_by_bits',
        'state',
        'exact',
        'hamming',
        'check_code',
        'hash_functions',
        'thresholds',
        'describe',
        'rows',
        'unchanged',
        'answer',
        'label_counts'
    ]
$function$;
