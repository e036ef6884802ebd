"""Pages that many look at: how often they are read, and what is shown when that fails."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg

from foh_pg.live import LivePages, kept
from foh_pg.live.kept import Kept


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_many_who_look_cost_one_reading() -> None:
    clock, reads, release = Clock(), [], threading.Event()

    def read() -> int:
        reads.append(clock.now)
        release.wait(30)
        return len(reads)

    page = Kept(read, 5, clock)
    with ThreadPoolExecutor(20) as pool:
        answers = [pool.submit(page.get) for _ in range(20)]
        release.set()
        assert {answer.result(timeout=30).value for answer in answers} == {1}
    clock.now = 4.9
    assert (page.get().value, reads) == (1, [0])
    clock.now = 5.0
    assert (page.get().value, reads) == (2, [0, 5])


def test_nobody_waits_for_a_page_that_is_there() -> None:
    clock, reading, release = Clock(), threading.Event(), threading.Event()
    release.set()

    def read() -> float:
        reading.set()
        assert release.wait(30)
        return clock.now

    page = Kept(read, 5, clock)
    page.get()
    reading.clear()
    release.clear()
    clock.now = 10
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(page.get)
        assert reading.wait(30)
        assert page.get().value == 0
        release.set()
        assert first.result(timeout=30).value == 10


def test_a_costly_page_is_read_more_seldom() -> None:
    clock, reads = Clock(), []

    def read() -> None:
        reads.append(clock.now)
        clock.now += 2

    page = Kept(read, 5, clock)
    for second in range(200):
        clock.now = max(clock.now, float(second))
        page.get()
    gaps = [after - before for before, after in itertools.pairwise(reads)]
    assert len(gaps) >= 3
    assert min(gaps) >= 2 / kept.SHARE


def test_what_was_read_stays_when_reading_fails() -> None:
    clock, failing = Clock(), [True]

    def read() -> str:
        if failing[0]:
            raise psycopg.OperationalError("the server\nis gone")
        return "rows"

    page = Kept(read, 5, clock)
    assert page.get() == kept.Shown(None, "the server is gone")
    failing[0], clock.now = False, 5
    assert page.get() == kept.Shown("rows")
    failing[0], clock.now = True, 10
    assert page.get() == kept.Shown("rows", "the server is gone")


def test_an_error_of_ours_does_not_block_the_page() -> None:
    clock = Clock()
    page: Kept[float] = Kept(lambda: 1 / clock.now, 5, clock)
    assert page.get().error == "float division by zero"
    clock.now = 10
    assert page.get().value == 0.1


def test_a_database_that_is_not_there() -> None:
    tries = []

    def connect() -> psycopg.Connection[object]:
        tries.append(1)
        raise psycopg.OperationalError("<b>no route</b>")

    pages = LivePages(connect)
    for path in ("/", "/index/a", "/index/b", "/"):
        answer = pages(path)
        assert answer is not None
        assert answer.status == 503
        assert "&lt;b&gt;no route" in answer.text
    assert len(tries) == 1
    assert pages("/other") is None
