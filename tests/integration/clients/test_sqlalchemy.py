"""FOHIndex and foh_search on a real server, on whatever SQLAlchemy is installed."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, joinedload, mapped_column

from foh_pg.errors import InputError
from foh_pg.sqlalchemy import FOHIndex, foh_search, select_nearest
from tests.shop.models import DIMENSIONS, Article, Base, Brand, Product, Topic
from tests.support.engines import engine as make_engine
from tests.support.engines import url
from tests.support.postgres import Database, Server

ROWS = 60


def vector(seed: int) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).standard_normal(DIMENSIONS)]


@pytest.fixture(scope="module")
def shop(server: Server) -> Iterator[Database]:
    """One database for all tests that only read it."""
    database = server.create_database(template=server.template)
    engine = make_engine(database)
    Base.metadata.create_all(engine)
    fill(engine)
    engine.dispose()
    yield database
    database.drop()


@pytest.fixture
def engine(shop: Database) -> Iterator[sa.Engine]:
    engine = make_engine(shop)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: sa.Engine) -> Iterator[Session]:
    """Rolled back after the test."""
    with Session(engine) as session:
        yield session


def fill(engine: sa.Engine) -> None:
    with Session(engine) as session:
        session.add_all([Brand(id=1, name="Acme"), Brand(id=2, name="Zenith")])
        session.flush()
        session.add_all(
            Product(
                id=i,
                name=f"p{i}",
                price=Decimal(i),
                tags=["even" if i % 2 == 0 else "odd"],
                details={"size": {"cm": i}, "color": "red" if i < 30 else "blue"},
                brand_id=1 + i % 2,
                vector=vector(i),
            )
            for i in range(1, ROWS + 1)
        )
        session.commit()


def nearest_by_hand(session: Session, query: list[float], condition: Any = None, k: int = 5) -> list[int]:
    """The answer that a search must give: on an untrained small index it is exact."""
    distance = Product.vector.cosine_distance(query)
    rows = sa.select(Product.id).where(sa.true() if condition is None else condition)
    return list(session.scalars(rows.order_by(distance).limit(k)))


class TestSearch:
    def test_as_a_selectable(self, session: Session) -> None:
        s = foh_search(Product, vector(7), k=5, probes=8)
        statement = (
            sa.select(Product, s.c.score, s.c.distance).join(s, s.c.id == Product.id).order_by(s.c.score)
        )
        rows = session.execute(statement).all()
        assert [row.Product.id for row in rows] == nearest_by_hand(session, vector(7))
        assert rows[0].Product.id == 7
        assert rows[0].score == rows[0].distance == pytest.approx(0, abs=1e-6)
        assert [row.score for row in rows] == sorted(row.score for row in rows)

    def test_alone(self, session: Session) -> None:
        s = foh_search(Product, vector(3), k=2)
        assert list(s.c.keys()) == ["id", "distance", "score"]
        assert session.scalars(sa.select(s.c.id)).all() == nearest_by_hand(session, vector(3), k=2)

    def test_entities_the_short_way(self, session: Session) -> None:
        found = session.scalars(select_nearest(Product, vector(9), k=4)).all()
        assert [product.id for product in found] == nearest_by_hand(session, vector(9), k=4)
        assert isinstance(found[0], Product)
        first, score = session.execute(select_nearest(Product, vector(9), k=4)).first()
        assert (first.id, score) == (9, pytest.approx(0, abs=1e-6))

    def test_composes(self, session: Session) -> None:
        statement = (
            select_nearest(Product, vector(5), k=20)
            .join(Product.brand)
            .where(Brand.name == "Acme")
            .options(joinedload(Product.brand))
            .limit(3)
        )
        found = session.scalars(statement).all()
        twenty = nearest_by_hand(session, vector(5), k=20)
        assert [product.id for product in found] == [i for i in twenty if i % 2 == 0][:3]
        assert {product.brand.name for product in found} == {"Acme"}

    def test_in_a_subquery_and_a_cte(self, session: Session) -> None:
        s = sa.select(foh_search(Product, vector(5), k=6)).cte("nearest")
        counted = sa.select(sa.func.count()).select_from(s)
        assert session.scalar(counted) == 6
        assert session.scalar(sa.select(sa.func.min(s.c.score))) == pytest.approx(0, abs=1e-6)

    def test_two_searches_in_one_statement(self, session: Session) -> None:
        a, b = foh_search(Product, vector(1), k=30), foh_search(Product, vector(2), k=30)
        both = sa.select(a.c.id).join(b, a.c.id == b.c.id)
        expected = set(nearest_by_hand(session, vector(1), k=30)) & set(
            nearest_by_hand(session, vector(2), k=30)
        )
        assert set(session.scalars(both)) == expected

    def test_an_expression_as_query(self, session: Session) -> None:
        other = sa.select(Product.vector).where(Product.id == 11).scalar_subquery()
        assert session.scalars(select_nearest(Product, other, k=3)).first().id == 11

    @pytest.mark.parametrize("kind", [np.asarray, lambda x: np.asarray(x, dtype=np.float64), list, tuple])
    def test_kinds_of_vectors(self, session: Session, kind: Any) -> None:
        assert session.scalars(select_nearest(Product, kind(vector(8)), k=1)).one().id == 8

    def test_an_alias(self, session: Session) -> None:
        other = aliased(Product)
        statement = select_nearest(other, vector(9), k=3, filter=other.price > 20)
        assert [p.id for p in session.scalars(statement)] == nearest_by_hand(
            session, vector(9), Product.price > 20, k=3
        )

    def test_a_table(self, session: Session) -> None:
        table = Product.__table__
        rows = session.execute(select_nearest(table, vector(9), k=3, filter=table.c.price > 20)).all()
        assert [row.id for row in rows] == nearest_by_hand(session, vector(9), Product.price > 20, k=3)

    def test_the_dial(self, session: Session) -> None:
        for labels in (0, 0.5, 1):
            statement = select_nearest(Product, vector(9), k=3, labels=labels)
            assert [p.id for p in session.scalars(statement)] == nearest_by_hand(session, vector(9), k=3)
        refused = r"labels is 2, it must be between 0 \(nearest vectors only\) and 1"
        with pytest.raises(sa.exc.DataError, match=refused):
            session.scalars(select_nearest(Product, vector(9), labels=2))

    def test_labels_in_another_table(self, session: Session) -> None:
        session.add_all(Article(id=f"a{i}", embedding=vector(i), topics=[Topic(topic="t")]) for i in range(5))
        session.flush()
        assert [a.id for a in session.scalars(select_nearest(Article, vector(3), k=1))] == ["a3"]
        entries = "SELECT count(DISTINCT key) FROM foh.articles_foh_stream"
        assert session.scalar(sa.text(entries)) == 5

    def test_is_cached(self, session: Session) -> None:
        """One compilation for all values, or a query would cost what its compilation does."""

        def key(number: int) -> Any:
            condition = sa.and_(Product.price < number, Product.id.in_(list(range(number))))
            return select_nearest(Product, vector(number), k=number, filter=condition)._generate_cache_key()

        assert key(1) is not None
        assert key(1).key == key(2).key
        other = select_nearest(Product, vector(1), k=1, filter=Product.price > 1)
        assert key(1).key != other._generate_cache_key().key

    def test_rows_match_their_values_when_cached(self, session: Session) -> None:
        for limit in (10, 20, 30):
            condition = Product.price < limit
            found = session.scalars(select_nearest(Product, vector(50), k=4, filter=condition)).all()
            assert [product.id for product in found] == nearest_by_hand(session, vector(50), condition, k=4)


def other_product(condition: Any) -> Any:
    other = aliased(Product)
    return sa.select(other.id).where(condition(other))


FILTERS = {
    "compare": Product.price < 10,
    "no rounding": Product.price < Decimal("9.999"),
    "text": Product.name == "p12",
    "longer than the column": Product.name == "p12 and more, cut by VARCHAR(10)",
    "quotes": sa.or_(Product.name == "it's", Product.name == "a\\'b", Product.id == 4),
    "injection": Product.name == "true) or (true) --",
    "percent": Product.name.like("p%1"),
    "startswith": Product.name.startswith("p1"),
    "modulo": Product.id % 7 == 3,
    "in": Product.id.in_([3, 4, 5]),
    "not in": Product.id.not_in([3, 4, 5]),
    "in nothing": Product.id.in_([]),
    "in texts": Product.name.in_(["p1", "p2", "it's"]),
    "between": Product.price.between(10, 12),
    "null": Product.brand_id.is_(None),
    "not": ~(Product.price < 50),
    "and or": sa.or_(sa.and_(Product.price > 5, Product.price < 8), Product.id == 40),
    "array": Product.tags.contains(["even"]),
    "any": sa.literal("odd") == sa.any_(Product.tags),
    "overlap": Product.tags.overlap(["odd", "other"]),
    "json": Product.details["color"].astext == "blue",
    "json path": Product.details[("size", "cm")].as_integer() < 9,
    "json contains": Product.details.contains({"color": "red"}),
    "exists": sa.exists().where(Brand.id == Product.brand_id, Brand.name == "Zenith"),
    "relationship": Product.brand.has(Brand.name == "Acme"),
    "subquery": Product.brand_id.in_(sa.select(Brand.id).where(Brand.name == "Acme").limit(5)),
    "own table again": Product.id.in_(other_product(lambda other: other.price > 55)),
    "function": sa.func.lower(Product.name) == sa.func.lower("P9"),
    "case": sa.case((Product.price > 30, "dear"), else_="cheap") == "dear",
    "literal column": sa.literal_column("price") < 7,
    "raw": sa.text("price < 7"),
    "raw with a value": sa.text("price < :limit").bindparams(limit=7),
    "relationship in or": sa.or_(~Product.brand.has(Brand.name == "Acme"), Product.price < 3),
    "float": Product.price < sa.literal(1e1 / 3, sa.Float),
    "date": sa.literal(datetime.date(2020, 2, 29)) < sa.func.current_date(),
    "timestamp": sa.literal(datetime.datetime(2020, 2, 29, tzinfo=datetime.timezone.utc)) < sa.func.now(),
    "uuid": sa.literal(uuid.UUID(int=5)) == sa.literal(uuid.UUID(int=5)),
    "bytes": sa.literal(b"\x00'\xff") == sa.literal(b"\x00'\xff"),
    "boolean": sa.literal(True) == (Product.price < 4),
    "constant": sa.true(),
    "no value": Product.name == sa.bindparam("missing", None, sa.String),
}


class TestFilter:
    @pytest.mark.parametrize("name", FILTERS)
    def test_means_what_it_means_in_where(self, session: Session, name: str) -> None:
        condition = FILTERS[name]
        found = session.scalars(select_nearest(Product, vector(30), k=5, filter=condition)).all()
        assert [product.id for product in found] == nearest_by_hand(session, vector(30), condition)

    def test_is_part_of_the_search(self, session: Session) -> None:
        """k rows come back although none of the k nearest match."""
        query = vector(30)
        far = nearest_by_hand(session, query, k=ROWS)[-5:]
        found = session.scalars(select_nearest(Product, query, k=3, filter=Product.id.in_(far))).all()
        assert [product.id for product in found] == far[:3]
        after = select_nearest(Product, query, k=3).where(Product.id.in_(far))
        assert session.scalars(after).all() == []

    def test_values_are_parameters(self, session: Session, engine: sa.Engine) -> None:
        statement = select_nearest(Product, vector(1), filter=Product.name == "secret")
        compiled = statement.compile(engine)
        assert "secret" not in compiled.string
        assert "secret" in compiled.params.values()

    def test_a_parameter_named_by_the_application(self, session: Session) -> None:
        condition = sa.and_(
            Product.price < sa.bindparam("top", type_=sa.Numeric),
            Product.id.in_(sa.bindparam("ids", expanding=True)),
        )
        statement = select_nearest(Product, vector(1), k=5, filter=condition)
        found = session.scalars(statement, {"top": 6, "ids": [4, 5, 6]}).all()
        assert {product.id for product in found} == {4, 5}

    def test_beside_a_join_with_the_same_table(self, session: Session) -> None:
        """The subquery in the filter keeps its own FROM."""
        condition = sa.exists().where(Brand.id == Product.brand_id, Brand.name == "Zenith")
        statement = select_nearest(Product, vector(4), k=4, filter=condition).join(Product.brand)
        found = [product.id for product in session.scalars(statement)]
        assert found == nearest_by_hand(session, vector(4), Product.brand_id == 2, k=4)

    def test_other_tables_need_a_subquery(self) -> None:
        with pytest.raises(InputError, match=r"reads brands beside 'products'.*exists"):
            foh_search(Product, vector(1), filter=Brand.name == "Acme")

    def test_a_column_named_params(self) -> None:
        table = sa.Table(
            "t", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("params", sa.Text)
        )
        FOHIndex("t_foh", "id")._set_parent_with_dispatch(table)
        with pytest.raises(InputError, match="column named params"):
            foh_search(table, vector(1), filter=table.c.id == 3)
        foh_search(table, vector(1), filter=table.c.params.is_(None))


class TestDeclaration:
    def test_create_all_and_drop_all(self, database: Database) -> None:
        engine = make_engine(database)
        Base.metadata.create_all(engine)
        names = "SELECT name, bits, distance, options ->> 'probes' FROM foh.index ORDER BY name"
        connection = database.connect()
        assert connection.execute(names).fetchall() == [
            ("articles_foh", 32, "l2", "4"),
            ("products_foh", 64, "cosine", "6"),
        ]
        Base.metadata.drop_all(engine)
        assert connection.execute(names).fetchall() == []
        left = """SELECT count(*) FROM pg_class
                  WHERE relnamespace = 'foh'::regnamespace AND relname ~ '^(prod|art)'"""
        assert connection.execute(left).fetchone() == (0,)
        engine.dispose()

    def test_columns_by_attribute_are_columns_by_name(self) -> None:
        definition = Product.metadata.info["foh_pg.indexes"]["products_foh"].definition
        assert (definition.table, definition.embedding, definition.labels) == (
            "products",
            "embedding",
            "tags",
        )
        definition = Product.metadata.info["foh_pg.indexes"]["articles_foh"].definition
        assert (definition.labels, definition.labels_from, definition.labels_key) == (
            "topic",
            "article_topics",
            "article_id",
        )

    def test_errors(self) -> None:
        class Own(DeclarativeBase):
            pass

        class Plain(Own):
            __tablename__ = "plain"
            id: Mapped[int] = mapped_column(primary_key=True)
            other: Mapped[int]

        with pytest.raises(InputError, match="no FOHIndex"):
            foh_search(Plain, vector(1))
        index = FOHIndex("x", Plain.id, labels="nothing")
        with pytest.raises(InputError, match=r"'plain' has no column 'nothing' \(labels\); it has id, other"):
            _ = index.definition
        FOHIndex("y", Plain.other)
        with pytest.raises(InputError, match="indexes 'x', 'y': choose one"):
            foh_search(Plain, vector(1))
        assert foh_search(Plain, vector(1), index="y") is not None
        with pytest.raises(InputError, match="no FOHIndex 'z'; it has 'x', 'y'"):
            foh_search(Plain, vector(1), index="z")
        with pytest.raises(InputError, match="declared on 'plain' and on 'more'"):
            sa.Table("more", Own.metadata, sa.Column("id", sa.Integer, primary_key=True), FOHIndex("x", "id"))
        with pytest.raises(InputError, match="expected the name of a column"):
            FOHIndex("x", 3)
        with pytest.raises(InputError, match="expected a mapped class"):
            foh_search("products", vector(1))

    def test_a_wrong_query(self, session: Session) -> None:
        for wrong, message in (([[1.0]], "must be a vector"), ("abc", "not a vector")):
            with pytest.raises(sa.exc.StatementError, match=message):
                session.execute(select_nearest(Product, wrong))
            session.rollback()
        with pytest.raises(sa.exc.DBAPIError, match=f"{DIMENSIONS} dimensions"):
            session.execute(select_nearest(Product, [1.0, 2.0]))

    def test_odd_names(self, database: Database) -> None:
        metadata = sa.MetaData()
        table = sa.Table(
            'Odd "table" %',
            metadata,
            sa.Column("score", sa.Integer, primary_key=True),
            sa.Column('E "%s"', ARRAY(sa.REAL)),
            sa.Column("Select", sa.Integer),
            FOHIndex("odd_index", 'E "%s"', dimensions=2, bits=16),
        )
        engine = make_engine(database)
        metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(
                table.insert(), [{"score": i, 'E "%s"': [i, 1], "Select": i} for i in range(5)]
            )
            s = foh_search(table, [3, 1], k=1, filter=sa.and_(table.c.Select < 3, table.c.Select != 2))
            assert list(s.c.keys()) == ["score", "distance", "foh_score"]
            assert connection.execute(sa.select(s.c.score)).scalars().all() == [1]
        metadata.drop_all(engine)
        engine.dispose()


def test_a_key_of_several_columns(database: Database) -> None:
    """Of a partitioned table too: entities, columns and conditions, one of them on a part of the key."""

    class Own(DeclarativeBase):
        pass

    class Note(Own):
        __tablename__ = "note"
        tenant_id: Mapped[int] = mapped_column(primary_key=True)
        number: Mapped[int] = mapped_column("id", sa.BigInteger, primary_key=True)
        price: Mapped[int] = mapped_column()
        vec: Mapped[Any] = mapped_column(ARRAY(sa.REAL))
        __table_args__ = (
            FOHIndex("notes", "vec", dimensions=2, bits=16, include=["tenant_id", "price"]),
            {"postgresql_partition_by": "HASH (tenant_id)"},
        )

    engine = make_engine(database)
    with engine.begin() as connection:
        for n in range(2):
            partition = sa.DDL(
                f"CREATE TABLE note_{n} PARTITION OF note FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
            )
            sa.event.listen(Own.metadata.tables["note"], "after_create", partition)
        Own.metadata.create_all(connection)
    with Session(engine) as session:
        # Ids are unique within a tenant only.
        session.add_all(
            Note(tenant_id=tenant, number=n, price=n, vec=[n + 1, 10 * tenant])
            for tenant in (1, 2, 3)
            for n in range(20)
        )
        session.commit()
        found = session.scalars(select_nearest(Note, [20, 10], k=3)).all()
        assert [(note.tenant_id, note.number) for note in found] == [(1, 19), (1, 18), (1, 17)]
        of_two = select_nearest(Note, [20, 10], k=2, filter=sa.and_(Note.tenant_id == 2, Note.price < 15))
        assert [(note.tenant_id, note.number) for note in session.scalars(of_two)] == [(2, 14), (2, 13)]
        s = foh_search(Note, [20, 10], k=1)
        assert list(s.c.keys()) == ["tenant_id", "id", "distance", "score"]
        joined = sa.select(Note.price).join(
            s, sa.and_(s.c.tenant_id == Note.tenant_id, s.c.id == Note.number)
        )
        assert session.scalars(joined).all() == [19]
    with engine.begin() as connection:
        Own.metadata.drop_all(connection)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_async(shop: Database, driver: str) -> None:
    import asyncio

    if driver == "asyncpg":
        pytest.importorskip("asyncpg")

    async def main() -> None:
        engine = create_async_engine(url(shop, driver=driver))
        async with AsyncSession(engine) as asynchronous:
            condition = sa.and_(
                Product.price < 20, Product.id.in_([3, 4, 30]), Product.tags.contains(["even"])
            )
            found = await asynchronous.scalars(select_nearest(Product, vector(3), k=5, filter=condition))
            assert [product.id for product in found] == [4]
        await engine.dispose()

    asyncio.run(main())


def test_a_statement_with_its_values_written_out(session: Session, engine: sa.Engine) -> None:
    literal = select_nearest(Product, vector(6), k=1).compile(engine, compile_kwargs={"literal_binds": True})
    assert session.execute(sa.text(literal.string.replace(":", r"\:"))).first().id == 6
