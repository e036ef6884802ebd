"""The hyper-parameters of FOH: what they are unless given, and what they may be."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from foh_pg.errors import InputError
from foh_pg.learners.base import Learner
from foh_pg.learners.similarity import Kind
from foh_pg.learners.stage import Constants

# What the authors use for data with one label per row, and with several.
SINGLE_LABEL = Constants(lam=0.6, sigma=0.8, eta_s=1.6, eta_d=0.2, theta=1.2, mu=0.5, tau=0.6)
MULTI_LABEL = Constants(lam=0.5, sigma=0.8, eta_s=1.0, eta_d=0.11, theta=1.5, mu=0.5, tau=5.0)

DEFAULT_MEMORY = 20_000
DEFAULT_WARMUP = 1_000


@dataclass(eq=False, repr=False)
class FOHParameters(Learner):
    """Hyper-parameters of `FOH`, described there."""

    bits: int = 64
    _: KW_ONLY
    preset: Literal["accumulated", "paper"] = "accumulated"
    similarity: Literal["auto", "equal", "graded", "shared"] = "auto"
    multi_label: bool | None = None
    lam: float | None = None
    sigma: float | None = None
    eta_s: float | None = None
    eta_d: float | None = None
    theta: float | None = None
    mu: float | None = None
    tau: float | None = None
    label_weight: float = 1.0
    memory: int | Literal["auto"] | None = "auto"
    forget: float = 1.0
    max_labels: int = 1000
    center: bool = True
    warmup: int | None = None
    initial_projection: npt.ArrayLike | None = None
    initial_label_projection: npt.ArrayLike | None = None
    seed: int = 0

    multi_label_: bool | None = field(init=False)

    @property
    def _dtype(self) -> npt.DTypeLike:  # type: ignore[override]
        # The authors' form is the reference and exact; the big products of the other one are in single
        # precision.
        return np.float64 if self.preset == "paper" else np.float32

    def _warmup_rows(self) -> int:
        if self.warmup is None:
            return 0 if self.preset == "paper" else DEFAULT_WARMUP
        return self.warmup

    def _memory_rows(self) -> int | None:
        if self.memory == "auto":
            return None if self.preset == "paper" else DEFAULT_MEMORY
        return self.memory

    def _kind(self) -> Kind:
        if self.similarity != "auto":
            return self.similarity
        return "graded" if self.multi_label_ else "equal"

    def _constants(self) -> Constants:
        names = ("lam", "sigma", "eta_s", "eta_d", "theta", "mu", "tau")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(MULTI_LABEL if self.multi_label_ else SINGLE_LABEL, **given)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.preset not in ("accumulated", "paper"):
            raise InputError(f"preset must be 'accumulated' or 'paper', not {self.preset!r}")
        if self.similarity not in ("auto", "equal", "graded", "shared"):
            raise InputError(f"similarity must be auto, equal, graded or shared, not {self.similarity!r}")
        for name in ("lam", "sigma", "tau"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(
                    f"{name} must be positive, not {value}: without it the solution is not unique"
                )
        for name in ("eta_s", "eta_d", "theta", "mu", "label_weight"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{name} must not be negative, it is {value}")
        if not 0 < self.forget <= 1:
            raise InputError(f"forget must be above 0 and at most 1, not {self.forget}")
        if self.max_labels < 1:
            raise InputError(f"max_labels must be at least 1, not {self.max_labels}")
        memory = self._memory_rows()
        if memory is not None and memory < 1:
            raise InputError(f"memory must be at least 1 row, or None for all, not {memory}")

    def _initial_label_projection(self) -> npt.NDArray[np.float64]:
        if self.initial_label_projection is None:
            return np.zeros((self.bits, 0))
        given = np.array(self.initial_label_projection, dtype=np.float64)
        if given.ndim != 2 or len(given) != self.bits or not np.isfinite(given).all():
            raise InputError(
                f"initial_label_projection must be a finite array of shape ({self.bits}, labels), "
                f"its shape is {given.shape}"
            )
        return given
