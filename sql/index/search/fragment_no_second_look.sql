RAISE EXCEPTION 'foh: index % has no labels to rank by', {name};
