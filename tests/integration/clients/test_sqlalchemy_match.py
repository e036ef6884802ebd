"""Conditions of SQLAlchemy on included columns: told as data where they can be, as a filter where not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column

from foh_pg.sqlalchemy import FOHIndex, foh_search, select_nearest
from tests.integration.clients.test_sqlalchemy import make_engine
from tests.support.postgres import Database


class Base(DeclarativeBase):
    pass


class Thing(Base):
    __tablename__ = "things"
    id: Mapped[int] = mapped_column(primary_key=True)
    embedding: Mapped[Any] = mapped_column(Vector(4))
    cost: Mapped[int | None] = mapped_column("price")
    status: Mapped[str]
    other: Mapped[int]
    __table_args__ = (FOHIndex("things", "embedding", include=["price", "status"], exact_rows=0),)


VECTOR = [1.0, 0.0, 0.5, 0.2]


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    engine = make_engine(database)
    Base.metadata.create_all(engine)
    drawn = np.random.default_rng(0)
    with Session(engine) as session:
        session.add_all(
            Thing(
                id=n,
                embedding=drawn.normal(size=4).tolist(),
                cost=n % 7 or None,
                status=["new", "it's used"][n % 2],
                other=n % 3,
            )
            for n in range(100)
        )
        session.commit()
        yield session
    engine.dispose()


def both(session: Session, condition: Any, *, data: bool, rest: bool) -> None:
    """The answer is that of the condition, and it is told in this form."""
    statement = select_nearest(Thing, VECTOR, k=100, filter=condition)
    found = {thing.id for thing in session.scalars(statement)}
    assert found == set(session.scalars(sa.select(Thing.id).where(condition)))
    compiled = str(statement.compile(dialect=session.get_bind().dialect))
    assert ("to_jsonb" in compiled) == data
    assert ("'s." in compiled or " s." in compiled or '"s' in compiled or 's."' in compiled) == rest, compiled


def test_what_can_be_told_as_data(session: Session) -> None:
    both(session, Thing.cost < 3, data=True, rest=False)
    both(
        session, sa.and_(Thing.cost >= 2, Thing.cost <= 4, Thing.status == "it's used"), data=True, rest=False
    )
    both(session, Thing.status.in_(["new", "none"]), data=True, rest=False)
    both(session, sa.and_(Thing.cost > 2, Thing.other == 1), data=True, rest=True)
    both(session, sa.and_(Thing.cost > 2, Thing.cost > 3), data=True, rest=True)


def test_what_is_left_to_the_filter(session: Session) -> None:
    both(session, sa.or_(Thing.cost < 3, Thing.status == "new"), data=False, rest=True)
    both(session, Thing.cost < 2.5, data=False, rest=True)
    both(session, Thing.cost.is_(None), data=False, rest=True)
    both(session, Thing.other == 1, data=False, rest=True)


def test_data_as_it_is(session: Session) -> None:
    search = foh_search(Thing, VECTOR, k=100, match={"price": [1, None], "status": {"not": "new"}})
    expected = sa.select(Thing.id).where(sa.or_(Thing.cost == 1, Thing.cost.is_(None)), Thing.status != "new")
    assert set(session.scalars(sa.select(search.c.id))) == set(session.scalars(expected))


def test_an_alias(session: Session) -> None:
    other = aliased(Thing)
    found = session.scalars(select_nearest(other, VECTOR, k=100, filter=other.cost == 5)).all()
    assert {thing.cost for thing in found} == {5}
