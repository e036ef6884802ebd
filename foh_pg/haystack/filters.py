"""Haystack's filters, nested dictionaries over the fields of a document, as conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from operator import ge, gt, le, lt
from reprlib import repr as shown
from typing import Any

import sqlalchemy as sa
from haystack.errors import FilterError as HaystackError

from foh_pg.errors import InputError
from foh_pg.stores.comparing import every, none, some, unlike
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import Field, Plain, field


class FilterError(InputError, HaystackError):
    """A filter of Haystack's that cannot be used: an error of ours, and of Haystack's."""


ORDER: Mapping[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
OPPOSITE = {"!=": "==", "not in": "in"}
COMPARISONS = ("==", "!=", *ORDER, "in", "not in")

# Text that can be read as a time: what else is in the metadata must not make a comparison fail.
DAY = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
HOUR = r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?"
WITHOUT_ZONE = f"{DAY}({HOUR})?$"
WITH_ZONE = DAY + HOUR + r"(Z|[+-]\d{2}(:?\d{2})?)$"


def condition(documents: Documents, filters: Mapping[str, Any] | None) -> sa.ColumnElement[bool] | None:
    """None where everything passes."""
    if filters is None or filters == {}:
        return None
    return _parse(documents, filters)


def _parse(documents: Documents, given: Any) -> sa.ColumnElement[bool]:
    if not isinstance(given, Mapping) or not isinstance(given.get("operator"), str):
        raise InputError(f"a condition is a dictionary with the key 'operator', not {shown(given)}")
    if "field" in given:
        if not isinstance(given["field"], str) or "value" not in given:
            raise InputError(f"a comparison has the name of a field, and a value, unlike {shown(given)}")
        return _compare(_field(documents, given["field"]), given["operator"], given["value"])
    conditions = given.get("conditions")
    if not isinstance(conditions, (list, tuple)):
        raise InputError(f"{shown(given)} has neither a field nor a list of conditions")
    parts = [_parse(documents, each) for each in conditions]
    join = {"AND": every, "OR": some, "NOT": none}.get(given["operator"])
    if join is None:
        raise InputError(
            f"unknown operator {given['operator']!r} between conditions; there are AND, OR and NOT"
        )
    return join(parts)


def _compare(field: Field, operator: str, value: Any) -> sa.ColumnElement[bool]:
    if operator in ORDER:
        return _ordered(field, operator, value)
    if operator in OPPOSITE:
        return unlike(_compare(field, OPPOSITE[operator], value))
    if operator == "==":
        return _equals(field, value)
    if operator != "in":
        raise InputError(f"unknown operator {operator!r}; there are {', '.join(COMPARISONS)}")
    if not isinstance(value, list):
        raise InputError(f"operator {operator!r} takes a list, not {shown(value)}")
    known = [each for each in value if each is not None]
    among = field.among(known)
    return sa.or_(among, _equals(field, None)) if len(known) < len(value) else among


def _equals(field: Field, value: Any) -> sa.ColumnElement[bool]:
    if value is None:
        return sa.or_(unlike(field.exists()), sa.func.coalesce(field.equals(None), False))
    return field.equals(value)


def _ordered(field: Field, operator: str, value: Any) -> sa.ColumnElement[bool]:
    compare = ORDER[operator]
    if value is None:
        return sa.false()
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        raise InputError(f"operator {operator!r} compares numbers and times, not {shown(value)}")
    if not isinstance(value, (str, datetime)):
        return field.compares(compare, value)
    text = field.text()
    # CASE keeps the server from reading other text as a time. Without a zone it is UTC, as for Haystack.
    instant = sa.case(
        (text.regexp_match(WITH_ZONE), sa.cast(text, sa.DateTime(timezone=True))),
        (text.regexp_match(WITHOUT_ZONE), sa.func.timezone("UTC", sa.cast(text, sa.DateTime()))),
    )
    return compare(instant, sa.cast(sa.literal(_time(operator, value)), sa.DateTime(timezone=True)))


def _time(operator: str, value: str | datetime) -> str:
    """A time with its zone, as the server reads it."""
    try:
        # Python before 3.11 does not know the Z.
        time = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
    except ValueError as error:
        raise InputError(
            f"operator {operator!r} compares numbers and times in ISO format, not the text {shown(value)}"
        ) from error
    return (time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time).isoformat()


def _field(documents: Documents, name: str) -> Field:
    """A field of the document, or of its meta: Haystack allows both with and without the prefix."""
    if name in ("id", "content"):
        return Plain(documents.key if name == "id" else documents.content, name)
    first, *inside = name.removeprefix("meta.").split(".")
    return field(documents, first, *inside)
