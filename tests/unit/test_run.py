"""What a run tells of itself."""

from __future__ import annotations

from foh_pg.runs.run import Run


def test_json_has_the_notes_and_nothing_of_the_inside() -> None:
    run = Run("items", "update", 1, 2, rows=3, id=7, progress=lambda *_: None)
    run.note("with 16 probes", about="ranking")
    run.note("going on with a build that was interrupted")
    with run.phase("read"):
        pass
    said = run.as_dict()
    assert list(said.pop("phases")) == ["read"]
    assert said == {
        "index": "items",
        "kind": "update",
        "from_version": 1,
        "to_version": 2,
        "rows": 3,
        "lists": 0,
        "rows_encoded": 0,
        "stale": None,
        "metrics": {},
        "error": None,
        "more": False,
        "notes": ["with 16 probes", "going on with a build that was interrupted"],
    }
