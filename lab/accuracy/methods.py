"""What is compared: learners with their options, by the names of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foh_pg.errors import InputError
from foh_pg.learners import Learner
from lab import rivals


@dataclass(frozen=True)
class Method:
    """A learner with options."""

    # The row of a table.
    name: str
    # Name of the learner.
    learner: str
    # Its hyper-parameters beyond bits and seed.
    options: Mapping[str, Any] = field(default_factory=dict)
    # "method", "ablation" or "extra". The name "all" means every method; ablations have a table of their own,
    # extras run only when named.
    role: str = "method"
    # Whether it makes sense with several labels per row only.
    multi_label: bool = False

    def make(self, bits: int, seed: int) -> Learner:
        """Make the learner."""
        build: Callable[..., Learner] = rivals.find(self.learner)
        return build(bits=bits, seed=seed, **self.options)


METHODS: tuple[Method, ...] = (
    Method("random", "random"),
    Method("sketchhash", "sketchhash"),
    Method("okh", "okh"),
    Method("adapthash", "adapthash"),
    Method("osh-boosted", "osh", {"loss": "boosted"}),
    Method("osh", "osh"),
    Method("mihash", "mihash"),
    Method("mihash-1000", "mihash", {"reservoir": 1000}, role="extra"),
    Method("bsodh", "bsodh"),
    Method("hmoh-ordered", "hmoh", {"permute": False}, role="extra"),
    Method("hmoh", "hmoh"),
    Method("foh-paper", "foh", {"preset": "paper"}),
    Method("foh", "foh"),
    Method("foh-l", "foh", {"theta": 0.0, "mu": 0.0}, role="ablation"),
    Method("foh-s", "foh", {"similarity": "shared"}, role="ablation", multi_label=True),
    Method("foh-paper-l", "foh", {"preset": "paper", "theta": 0.0, "mu": 0.0}, role="ablation"),
    Method(
        "foh-paper-s", "foh", {"preset": "paper", "similarity": "shared"}, role="ablation", multi_label=True
    ),
)

_BY_NAME = {method.name: method for method in METHODS}


def choose(names: Sequence[str]) -> list[Method]:
    """Find methods by name; `all` is every method that is neither ablation nor extra.

    Examples
    --------
    >>> [method.name for method in choose(["foh", "hmoh"])]
    ['foh', 'hmoh']
    """
    chosen: dict[str, Method] = {}
    for name in names:
        if name == "all":
            chosen.update({method.name: method for method in METHODS if method.role == "method"})
        elif name in _BY_NAME:
            chosen[name] = _BY_NAME[name]
        else:
            raise InputError(f"there is no learner {name!r} to compare, only all, {', '.join(_BY_NAME)}")
    return list(chosen.values())


def ablations(multi_label: bool) -> list[Method]:
    """Give the variants of FOH that leave something out."""
    return [m for m in METHODS if m.role == "ablation" and (multi_label or not m.multi_label)]
