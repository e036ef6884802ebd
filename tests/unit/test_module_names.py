"""A name of a module says what it does: two modules have the same name only where they do the same job."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import foh_pg

# The same few names in the room of every framework; and a command has the name of what it calls.
ROOMS_WITH_NAMES_OF_OTHERS = {"alembic", "cli", "django", "haystack", "langchain", "sqlalchemy"}


def test_no_two_modules_have_the_same_name() -> None:
    package = Path(foh_pg.__file__).parent
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.stem != "__init__" and place.parts[0] not in ROOMS_WITH_NAMES_OF_OTHERS:
            found[place.stem].append(str(place))
    assert len(found) > 100
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
