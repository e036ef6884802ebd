"""Haystack's filters, nested dictionaries over the fields of a document, as conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa
from haystack.errors import FilterError as HaystackError

from foh_pg.errors import InputError
from foh_pg.stores.documents import Documents
from foh_pg.stores.fields import Field, field
from foh_pg.stores.filter_parts import check_parts, shown


class FilterError(InputError, HaystackError):
    """A filter of Haystack's that cannot be used: an error of ours, and of Haystack's."""


ORDER: dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
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
    if not isinstance(filters, Mapping):
        raise FilterError(f"filters must be a dictionary, not {shown(filters)}")
    try:
        check_parts(filters)
        return _parse(documents, filters)
    except FilterError:
        raise
    except InputError as error:
        raise FilterError(str(error)) from error


def _parse(documents: Documents, given: Any) -> sa.ColumnElement[bool]:
    if not isinstance(given, Mapping) or "operator" not in given:
        raise FilterError(f"a condition is a dictionary with the key 'operator', not {shown(given)}")
    if "field" in given:
        return _comparison(documents, given)
    if "conditions" not in given:
        raise FilterError(f"{shown(given)} has neither 'field' nor 'conditions'")
    conditions = given["conditions"]
    if not isinstance(conditions, (list, tuple)):
        raise FilterError(f"conditions are a list, not {shown(conditions)}")
    parts = [_parse(documents, each) for each in conditions]
    operator = given["operator"]
    if operator == "AND":
        return sa.and_(sa.true(), *parts)
    if operator == "OR":
        return sa.or_(sa.false(), *parts)
    if operator == "NOT":
        return sa.not_(_known(sa.and_(sa.true(), *parts)))
    raise FilterError(f"unknown operator {shown(operator)} between conditions; there are AND, OR and NOT")


def _comparison(documents: Documents, given: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    if "value" not in given:
        raise FilterError(f"{shown(given)} has no 'value'")
    operator, value = given["operator"], given["value"]
    if not isinstance(operator, str) or not isinstance(given["field"], str):
        raise FilterError(f"'operator' and 'field' are texts, unlike those of {shown(given)}")
    found = _field(documents, given["field"])
    if operator == "==":
        return _equals(found, value)
    if operator == "!=":
        return sa.not_(_known(_equals(found, value)))
    if operator in ORDER:
        return _ordered(found, operator, value)
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"operator {operator!r} takes a list, not {shown(value)}")
        among = _among(found, value)
        return among if operator == "in" else sa.not_(_known(among))
    raise FilterError(f"unknown operator {shown(operator)}; there are {', '.join(COMPARISONS)}")


def _known(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """False in place of NULL: a document without the field is one that does not match."""
    return sa.func.coalesce(condition, False)


def _equals(found: Field | sa.Column[Any], value: Any) -> sa.ColumnElement[bool]:
    if isinstance(found, sa.Column):
        return found.is_(None) if value is None else found == sa.literal(value, found.type)
    if value is None:
        return sa.or_(sa.not_(_known(found.exists())), _known(found.equals(None)))
    return found.equals(value)


def _among(found: Field | sa.Column[Any], values: list[Any]) -> sa.ColumnElement[bool]:
    known = [value for value in values if value is not None]
    among = found.in_(known) if isinstance(found, sa.Column) else found.among(known)
    return sa.or_(among, _equals(found, None)) if len(known) < len(values) else among


def _ordered(found: Field | sa.Column[Any], operator: str, value: Any) -> sa.ColumnElement[bool]:
    compare = ORDER[operator]
    if value is None:
        return sa.false()
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        raise FilterError(f"operator {operator!r} compares numbers and times, not {shown(value)}")
    if isinstance(found, sa.Column):
        return compare(found, sa.literal(value, found.type))
    if not isinstance(value, (str, datetime)):
        return found.compares(compare, value)
    text = found.text()
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
        raise FilterError(
            f"operator {operator!r} compares numbers and times in ISO format, not the text {shown(value)}"
        ) from error
    return (time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time).isoformat()


def _field(documents: Documents, name: str) -> Field | sa.Column[Any]:
    """A field of the document, or of its meta: Haystack allows both with and without the prefix."""
    if name == "id":
        return documents.key
    if name == "content":
        return documents.content
    first, *inside = name.removeprefix("meta.").split(".")
    return field(documents, first, *inside)
