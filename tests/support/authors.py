"""A straight numpy transcription of the authors' single-label loop, to compare speed and results with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foh_pg.learners.foh_parameters import SINGLE_LABEL

Matrix = npt.NDArray[np.float64]


def sgn(scores: Matrix) -> Matrix:
    """Give +1 where a score is zero or more, else -1."""
    return np.where(scores >= 0, 1.0, -1.0)


def stage(
    W: Matrix, P: Matrix, Be: Matrix, Le: Matrix, Xs: Matrix, Ls: Matrix
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Do one stage on columns as rows; return W, P, B_e and B_s."""
    con, (k, _), c = SINGLE_LABEL, Be.shape, len(P.T)
    same = Ls.T @ Le > 0
    Bs = sgn(W.T @ Xs)
    for i in range(Bs.shape[1]):
        equal = np.flatnonzero(same[i])
        if len(equal):
            Bs[:, i] = Be[:, equal[0]]
    S = np.where(same, con.eta_s, -con.eta_d)
    G = k * Be @ S.T + con.sigma * W.T @ Xs + con.theta * P @ Ls
    for r in range(k):
        others = np.delete(np.arange(k), r)
        Bs[r] = sgn(G[r] - Be[r] @ Be[others].T @ Bs[others])
    Z = k * Bs @ S - con.mu * P @ Le
    Be = sgn(2 * Z - Bs @ Bs.T @ Be)
    right = con.mu * Be @ Le.T + con.theta * Bs @ Ls.T
    P = right @ np.linalg.inv(con.theta * Ls @ Ls.T + con.mu * Le @ Le.T + con.tau * np.eye(c))
    gram = con.sigma * Xs @ Xs.T + con.lam * np.eye(len(Xs))
    W = con.sigma * np.linalg.inv(gram) @ Xs @ Bs.T
    return W, P, Be, Bs
