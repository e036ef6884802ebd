"""nearest() and similar_to(): instances, their order, and everything that querysets can be composed with."""

from __future__ import annotations

import datetime
import pickle
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from asgiref.sync import sync_to_async
from django.core.paginator import Paginator
from django.db import connection, connections, transaction
from django.db.models import (
    Avg,
    BooleanField,
    Count,
    Exists,
    F,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
    Value,
    Window,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Lower, Rank
from django.db.utils import DataError
from django.test.utils import CaptureQueriesContext

from foh_pg.errors import IndexNotFound, InputError
from tests.django_shop.catalog.models import Article, Book, Brand, Film, Product, Review
from tests.integration.django_shop.conftest import ROWS, vector
from tests.support.postgres import Database

pytestmark = pytest.mark.usefixtures("shop")


def distance(one: Any, other: Any) -> float:
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return 1 - float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def expected(k: int, keep: Any = lambda product: True, query: int = 7) -> list[str]:
    """The nearest by cosine, computed here; a small index that was never trained is exact."""
    kept = [product for product in Product.objects.exclude(vector=None) if keep(product)]
    kept.sort(key=lambda product: distance(product.vector, vector(query)))
    return [product.name for product in kept[:k]]


def names(found: Any) -> list[str]:
    return [product.name for product in found]


class TestNearest:
    def test_instances_in_order_with_their_score(self) -> None:
        found = list(Product.objects.nearest(vector(7), k=5))
        assert all(type(product) is Product for product in found)
        assert names(found) == expected(5)
        assert found[0].name == "product 7"
        for product in found:
            assert product.score == pytest.approx(distance(product.vector, vector(7)), abs=1e-5)

    @pytest.mark.parametrize(
        "kind", [tuple, np.array, lambda x: np.asarray(x, np.float16).astype(np.float64)]
    )
    def test_kinds_of_vectors(self, kind: Any) -> None:
        assert names(Product.objects.nearest(kind(vector(7)), k=2)) == expected(2)

    def test_arguments_reach_the_search(self) -> None:
        with CaptureQueriesContext(connection) as captured:
            list(Product.objects.nearest(vector(7), k=3, labels=0.25, probes=4, shortlist=20))
        [statement] = [each["sql"] for each in captured]
        assert "k => 3, labels => 0.25, probes => 4, shortlist => 20) AS" in statement

    def test_on_managers_querysets_and_relations(self) -> None:
        assert names(Product.objects.cheap().nearest(vector(7), k=50)) == expected(50, lambda p: p.price < 20)
        brand = Brand.objects.get(name="Acme")
        found = brand.products.nearest(vector(7), k=4)
        assert names(found) == expected(4, lambda p: p.brand_id == brand.pk)

    def test_a_row_is_found_in_its_own_transaction(self) -> None:
        new = Product.objects.create(name="new", price=1, vector=vector(999))
        assert Product.objects.nearest(vector(999), k=1).get() == new
        new.delete()
        assert Product.objects.nearest(vector(999), k=1).get() != new

    def test_keys_and_embeddings_of_other_types(self) -> None:
        assert Article.objects.nearest(vector(203), k=1, score="nearness").get().slug == "article 3"
        found = Film.objects.nearest(vector(402)[:4], k=1, index="films_by_poster").get()
        assert (str(found.pk)[-1], found.score) == ("2", pytest.approx(0, abs=1e-5))
        assert str(Film.objects.nearest(vector(304), k=1, index="films_by_plot").get().pk)[-1] == "4"


class TestSimilar:
    def test_without_itself(self) -> None:
        product = Product.objects.get(name="product 7")
        assert names(Product.objects.similar_to(product, k=4)) == expected(5)[1:]
        assert names(Product.objects.similar_to(product.pk, k=4)) == expected(5)[1:]
        cheap = Product.objects.cheap().similar_to(product, k=3)
        assert names(cheap) == expected(4, lambda p: p.price < 20)[1:]

    def test_deferred_and_unsaved(self) -> None:
        deferred = Product.objects.defer("vector").get(name="product 7")
        assert names(Product.objects.similar_to(deferred, k=2)) == expected(3)[1:]
        assert names(Product.objects.similar_to(Product(vector=vector(7)), k=1)) == ["product 7"]

    def test_without_an_embedding(self) -> None:
        product = Product.objects.create(name="none", price=1)
        with pytest.raises(InputError, match="has no vector: nothing can be similar"):
            Product.objects.similar_to(product)
        with pytest.raises(DataError, match="the query is NULL"):
            list(Product.objects.similar_to(-1))


class TestLabels:
    def test_suggested_for_a_vector_and_for_an_instance(self) -> None:
        for product in Product.objects.nearest(vector(7), k=20, labels=0):
            Product.objects.filter(pk=product.pk).update(tags=["near"])
        Product.objects.filter(name="product 7").update(tags=["own"])
        product = Product.objects.get(name="product 7")
        shown = Product.objects.suggest_labels(vector(7), k=10)
        assert {(one.label, one.neighbors) for one in shown} == {("near", 19), ("own", 1)}
        # An instance has no vote.
        [like] = [one for one in Product.objects.suggest_labels(product, k=10) if one.neighbors >= 19]
        assert like.label == "near"
        assert "own" not in {one.label for one in Product.objects.suggest_labels(product, k=10)}

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="the query has 2"):
            Product.objects.suggest_labels([1, 2])
        with pytest.raises(InputError, match="has no vector"):
            Product.objects.suggest_labels(Product(name="none"))


MADE = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)
SERIAL = uuid.UUID(int=5)

# Conditions, and the same in Python.
FILTERS: dict[str, tuple[Any, Any]] = {
    "number": (Q(price__lt=Decimal("20.5")), lambda p: p.price < 20.5),
    "text": (Q(name="product 9"), lambda p: p.name == "product 9"),
    "pattern with %": (Q(name__contains="%"), lambda p: False),
    "quotes": (Q(name="it's \\ \"x\" $foh$ %s"), lambda p: False),
    "pattern": (Q(name__iendswith="3"), lambda p: p.name.endswith("3")),
    "list": (Q(pk__in=[3, 5, 8]), lambda p: p.pk in (3, 5, 8)),
    "range": (Q(price__range=(10, 15)), lambda p: 10 <= p.price <= 15),
    "array": (Q(tags__contains=["odd"]), lambda p: "odd" in p.tags),
    "json": (Q(details__color="blue", details__size__gte=2), lambda p: p.details.get("color") == "blue" and p.details["size"] >= 2),
    "null": (Q(brand=None), lambda p: p.brand_id is None),
    "or, not": (Q(price__lt=5) | ~Q(price__lt=55), lambda p: p.price < 5 or p.price >= 55),
    "xor": (Q(price__lt=30) ^ Q(price__gt=20), lambda p: (p.price < 30) != (p.price > 20)),
    "time": (Q(made__year=2026) | Q(made=MADE) | Q(serial=SERIAL), lambda p: False),
    "expression": (Q(price__gt=F("pk") + 100), lambda p: False),
    "function": (Q(Exists(Review.objects.filter(product=OuterRef("pk"), stars=4))), lambda p: p.reviews.filter(stars=4).exists()),
    "subquery": (Q(pk__in=Review.objects.filter(stars=3).values("product")), lambda p: p.reviews.filter(stars=3).exists()),
    "another table": (Q(brand__name="O'Hara %s"), lambda p: p.brand and p.brand.name.startswith("O'")),
    "another table or this": (Q(brand__name="Acme") | Q(price=10), lambda p: (p.brand and p.brand.name == "Acme") or p.price == 10),
    "not another table": (~Q(brand__name="Acme"), lambda p: not (p.brand and p.brand.name == "Acme")),
    "many rows of another table": (Q(reviews__stars__gte=1), lambda p: p.reviews.exists()),
    "no rows of another table": (~Q(reviews__stars=2), lambda p: not p.reviews.filter(stars=2).exists()),
    "SQL": (Q(RawSQL("products.price < %s", [9], BooleanField())), lambda p: p.price < 9),
    "a child's table": (Q(book__isbn="978-2"), lambda p: p.name == "book 2"),
}  # fmt: skip


class TestFilter:
    @pytest.mark.parametrize("name", FILTERS)
    def test_is_part_of_the_search(self, name: str) -> None:
        """Twelve rows come back whenever twelve match, whether the filter stands before or after; none twice."""
        condition, keep = FILTERS[name]
        wanted = expected(12, keep)
        assert names(Product.objects.filter(condition).nearest(vector(7), k=12)) == wanted
        assert names(Product.objects.nearest(vector(7), k=12).filter(condition)) == wanted
        assert Product.objects.nearest(vector(7), k=12).filter(condition).count() == len(wanted)

    def test_counting_rows_of_another_table(self) -> None:
        found = Product.objects.annotate(n=Count("reviews")).filter(n__gte=3).nearest(vector(7), k=5)
        assert names(found) == expected(5, lambda p: p.reviews.count() >= 3)
        assert all(product.n >= 3 for product in found)
        after = Product.objects.nearest(vector(7), k=5).annotate(n=Count("reviews")).filter(n__gte=3)
        assert names(after) == names(found)

    def test_filters_that_follow_each_other(self) -> None:
        found = Product.objects.filter(price__lt=40).nearest(vector(7), k=6)
        found = found.exclude(tags__contains=["odd"]).filter(brand__name="Acme", reviews__stars=1)
        assert names(found) == expected(
            6, lambda p: p.price < 40 and "odd" not in p.tags and p.brand and p.brand.name == "Acme" and p.reviews.exists()
        )  # fmt: skip

    @pytest.mark.parametrize(
        "value", ["it's", "\\'; --", 'a"b', "$foh$", "100%", "%s %(x)s", "{}", "') OR (true"]
    )
    def test_values_are_values(self, value: str) -> None:
        product = Product.objects.create(
            name=value, price=1, tags=[value], details={value: value}, vector=vector(1)
        )
        Review.objects.create(product=product, stars=77)
        for condition in (
            Q(name=value),
            Q(tags__contains=[value]),
            Q(details__contains={value: value}),
            Q(name__contains=value, reviews__stars=77),
            Q(pk__in=Product.objects.filter(name=value).values("pk")),
        ):
            assert list(Product.objects.filter(condition).nearest(vector(7), k=5)) == [product]

    def test_nothing_matches(self) -> None:
        found = Product.objects.nearest(vector(7), k=5)
        for none in (found.none(), found.filter(pk__in=[]), found.exclude(pk__isnull=False)):
            assert list(none) == []
            assert none.count() == 0
            assert not none.exists()
            assert none.aggregate(n=Count("pk"), mean=Avg("price")) == {"n": 0, "mean": None}

    def test_the_score_is_compared_after_the_search(self) -> None:
        scores = [product.score for product in Product.objects.nearest(vector(7), k=10)]
        found = Product.objects.nearest(vector(7), k=10).filter(score__lt=scores[4], price__gt=0)
        assert names(found) == expected(4)
        with pytest.raises(InputError, match=r"score into a filter\(\) of its own"):
            list(Product.objects.nearest(vector(7)).filter(Q(score__lt=0.1) | Q(price=1)))

    def test_window_functions_are_refused(self) -> None:
        ranked = Product.objects.annotate(r=Window(Rank(), order_by="price")).filter(r__lt=9)
        with pytest.raises(InputError, match=r"window function.*filter\(pk__in"):
            list(ranked.nearest(vector(7)))

    def test_the_search_reads_no_more_than_it_must(self) -> None:
        """What conditions have joined for themselves is joined inside the search alone."""
        found = Product.objects.filter(brand__name="Acme", reviews__stars=1, price__lt=50).nearest(vector(7))
        _, outside = re.split(r'AS "?foh_search', str(found.query))
        assert "brand" not in outside
        assert "review" not in outside


class TestComposing:
    def test_select_related_and_prefetch(self) -> None:
        found = Product.objects.nearest(vector(7), k=6).select_related("brand").prefetch_related("reviews")
        with CaptureQueriesContext(connection) as captured:
            seen = [(p.name, p.brand and p.brand.name, len(p.reviews.all())) for p in found]
        assert len(captured) == 2
        assert [name for name, _, _ in seen] == expected(6)
        again = Product.objects.filter(brand__name="Acme").nearest(vector(7), k=6).select_related("brand")
        assert {product.brand.name for product in again} == {"Acme"}
        assert len(again) == 6

    def test_prefetching_a_search(self) -> None:
        near = Prefetch("products", Product.objects.nearest(vector(7), k=10), to_attr="near")
        found = {brand.name: names(brand.near) for brand in Brand.objects.prefetch_related(near)}
        both = expected(10, lambda p: p.brand_id is not None)
        assert sorted(found["Acme"] + found["O'Hara %s"]) == sorted(both)

    def test_slices_and_pages(self) -> None:
        found = Product.objects.nearest(vector(7), k=25)
        assert names(found[:3]) == expected(3)
        assert names(found[5:8]) == expected(8)[5:]
        assert found[24].name == expected(25)[24]
        assert found.first().name == expected(1)[0]
        assert found.last().name == expected(25)[24]
        assert list(found[25:30]) == []
        pages = Paginator(found, 10)
        assert (pages.count, names(pages.page(3))) == (25, expected(25)[20:])

    def test_values(self) -> None:
        found = Product.objects.nearest(vector(7), k=3)
        assert list(found.values_list("name", flat=True)) == expected(3)
        rows = list(found.values("name", "brand__name", "score"))
        assert [row["name"] for row in rows] == expected(3)
        assert set(rows[0]) == {"name", "brand__name", "score"}
        assert [product.name for product in found.only("name")] == expected(3)
        assert list(found.in_bulk()) == [product.pk for product in found]

    def test_counting(self) -> None:
        found = Product.objects.nearest(vector(7), k=13)
        assert found.count() == len(found) == 13
        found = found.all()
        assert found[:4].count() == 4
        assert found.exists()
        assert found.contains(Product.objects.get(name="product 7"))
        assert not found.filter(price__gt=1000).exists()
        assert Product.objects.nearest(vector(7), k=500).count() == ROWS + 4

    def test_aggregates_and_groups(self) -> None:
        found = Product.objects.nearest(vector(7), k=20)
        near = Product.objects.filter(name__in=expected(20))
        assert found.aggregate(Avg("price")) == near.aggregate(Avg("price"))
        by_brand = found.order_by().values("brand__name").annotate(n=Count("pk")).order_by("brand__name")
        assert sum(row["n"] for row in by_brand) == 20
        assert list(by_brand) == list(
            near.values("brand__name").annotate(n=Count("pk")).order_by("brand__name")
        )

    def test_annotations_and_another_order(self) -> None:
        found = Product.objects.annotate(low=Lower("name"), b=F("brand__name")).nearest(vector(7), k=5)
        assert [product.low for product in found] == expected(5)
        assert {product.b for product in found} <= {"Acme", "O'Hara %s", None}
        dearest = found.order_by("-price").filter(low__startswith="product")
        prices = [product.price for product in dearest]
        assert prices == sorted(prices, reverse=True)
        assert set(names(dearest)) == set(expected(5))
        assert names(found.reverse()) == expected(5)[::-1]
        assert len(found.distinct()) == 5

    def test_as_a_subquery(self) -> None:
        near = Product.objects.filter(price__lt=30).nearest(vector(7), k=6)
        found = Product.objects.filter(pk__in=near.values("pk")).order_by("name")
        assert names(found) == sorted(expected(6, lambda p: p.price < 30))
        reviews = Review.objects.filter(product__in=near.values("pk"))
        assert set(reviews.values_list("product__name", flat=True)) <= set(names(near))

    def test_a_vector_from_the_statement_around(self) -> None:
        nearest = Product.objects.nearest(OuterRef("vector"), k=2).values("name")[1:2]
        rows = Product.objects.filter(price__lte=3, name__startswith="p").annotate(like=Subquery(nearest))
        for product in rows:
            assert product.like == Product.objects.similar_to(product, k=1).get().name
        other = Product.objects.nearest(OuterRef("vector"), k=2).exclude(pk=OuterRef("pk")).values("name")[:1]
        with pytest.raises(InputError, match=r"OuterRef.*Ask for more rows"):
            list(rows.annotate(other=Subquery(other)))

    def test_union(self) -> None:
        one, other = (Product.objects.nearest(vector(seed), k=3) for seed in (7, 8))
        assert set(names(one.union(other))) == set(expected(3)) | set(expected(3, query=8))

    def test_update_and_delete(self) -> None:
        assert Product.objects.filter(price__lt=30).nearest(vector(7), k=4).update(name="near") == 4
        assert Product.objects.filter(name="near").count() == 4
        assert (
            Product.objects.filter(name="near", price__lt=30)
            .nearest(vector(7), k=3)
            .delete()[1]["catalog.Product"]
            == 3
        )
        assert Product.objects.filter(name="near").count() == 1

    def test_iterator_explain_and_pickle(self) -> None:
        found = Product.objects.filter(price__lt=30).nearest(vector(7), k=4)
        assert names(found.iterator(chunk_size=2)) == names(found)
        assert "products_search" in found.explain()
        query = pickle.loads(pickle.dumps(found.query))
        again = Product.objects.all()
        again.query = query
        assert names(again) == names(found)
        assert names(pickle.loads(pickle.dumps(found))) == names(found)

    def test_children_of_a_model(self) -> None:
        found = list(Book.objects.nearest(vector(101), k=3))
        assert [(type(book), book.name) for book in found[:1]] == [(Book, "book 1")]
        assert {book.isbn[:4] for book in found} == {"978-"}
        assert len(found) == 3
        assert names(Book.objects.filter(isbn="978-3", price__lt=9).nearest(vector(101), k=3)) == ["book 3"]

    def test_locking(self) -> None:
        near = Product.objects.filter(brand__name="Acme", price__gt=0).nearest(vector(7), k=2)
        wanted = expected(2, lambda p: p.brand and p.brand.name == "Acme")
        assert names(near.select_for_update()) == wanted
        assert names(near.select_related("brand").select_for_update(of=("self",))) == wanted


class TestErrors:
    @pytest.mark.parametrize(
        ("search", "message"),
        [
            (lambda o: o.nearest([1, 2, 3]), "index 'products' has 8 dimensions, the query has 3"),
            (lambda o: o.nearest(["a"] * 8), "not a vector"),
            (lambda o: o.nearest([float("nan")] * 8), "NaN"),
            (lambda o: o.nearest(vector(1), k=0), "k is 0"),
            (lambda o: o.nearest(vector(1), k="3"), "k is '3'"),
            (lambda o: o.nearest(vector(1), labels=2), "labels is 2"),
            (lambda o: o.nearest(vector(1), index="other"), "no FohIndex 'other'; it has 'products'"),
            (lambda o: o.nearest(vector(1), score="price"), r"field named 'price'.*score='nearness'"),
            (lambda o: o.all()[:3].nearest(vector(1)), "search first, then slice"),
            (lambda o: o.values("pk").nearest(vector(1)), r"search first, then values\(\)"),
            (lambda o: o.union(o.all()).nearest(vector(1)), r"search first, then union\(\)"),
            (lambda o: o.nearest(vector(1)).nearest(vector(1)), "already"),
            (lambda o: o.nearest(vector(1)) & o.all(), "combined with &"),
            (lambda o: o.all() | o.nearest(vector(1)), r"combined with \|"),
        ],
    )
    def test_they_teach(self, search: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            search(Product.objects)

    def test_of_models_without_an_index_or_with_several(self) -> None:
        from foh_pg.django import FohQuerySet

        with pytest.raises(InputError, match=r"catalog\.Brand has no FohIndex: put FohIndex\('embedding'"):
            FohQuerySet(Brand).nearest([1])
        with pytest.raises(InputError, match="'films_by_plot', 'films_by_poster': choose one"):
            Film.objects.nearest(vector(1))
        with pytest.raises(InputError, match=r"catalog\.Article has a field named 'score'"):
            Article.objects.nearest(vector(1))

    def test_of_a_database_without_the_index(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT foh.drop_index('products')")
        with pytest.raises(IndexNotFound, match=r"for catalog\.Product: run manage\.py migrate"):
            list(Product.objects.nearest(vector(1)))

    def test_of_the_server(self) -> None:
        with pytest.raises(DataError, match="probes is 0"), transaction.atomic():
            list(Product.objects.nearest(vector(1), probes=0))


class TestOtherConnections:
    @pytest.mark.parametrize("shop", [{"server_side_binding": True}], indirect=True)
    def test_parameters_bound_by_the_server(self, shop: Any) -> None:
        found = Product.objects.filter(FILTERS["or, not"][0], brand__name="Acme").nearest(
            vector(7), k=4, labels=0
        )
        wanted = expected(4, lambda p: FILTERS["or, not"][1](p) and p.brand and p.brand.name == "Acme")
        assert names(found) == wanted
        assert found.count() == 4
        assert names(Product.objects.similar_to(7, k=2)) == expected(3)[1:]

    async def test_async(self, filled: Database) -> None:
        def names_expected(*arguments: Any) -> Any:
            return sync_to_async(expected)(*arguments)

        try:
            found = Product.objects.nearest(vector(7), k=5)
            assert [product.name async for product in found] == await names_expected(5)
            assert await found.acount() == 5
            assert (await found.afirst()).name == "product 7"
            assert (await found.aget(name="product 7")).score == pytest.approx(0, abs=1e-5)
            assert await found.filter(price__lt=1).aexists() is False
            related = [p.brand async for p in found.select_related("brand").aiterator()]
            assert len(related) == 5
            product = await Product.objects.aget(name="product 7")
            like = [p.name async for p in Product.objects.filter(price__lt=30).similar_to(product, k=2)]
            assert like == (await names_expected(3, lambda p: p.price < 30))[1:]
        finally:
            await sync_to_async(connections.close_all)()


def test_an_annotated_value_is_not_lost() -> None:
    [found] = Product.objects.annotate(one=Value(1)).nearest(vector(7), k=1)
    assert found.one == 1
