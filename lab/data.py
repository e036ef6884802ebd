"""Data sets that are read from a file or built in."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foh_pg.arrays.vocabulary import Vocabulary
from foh_pg.errors import InputError
from lab.dataset import Dataset

# Where Debian's package dataset-fashion-mnist puts its files.
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


def describe(data: Dataset) -> dict[str, Any]:
    """What a reader of a figure must know about the data."""
    return {
        "name": data.name,
        "rows": len(data.X),
        "dimensions": data.X.shape[1],
        "labels": len(data.label_names),
        "labels_per_row": round(float(data.sets.counts.mean()), 3),
        "multi_label": data.multi_label,
    }


def load(source: str) -> Dataset:
    """Load a data set: `digits`, `fashion-mnist`, or a file ending in .npz, .csv or .parquet.

    - npz: `X` (n, d), and `Y` (n,) of numbers or names or (n, c) multi-hot, or `Y_packed` with the columns
      packed by `numpy.packbits`; `classes` names the labels if it is there.
    - csv: a column `label` or `labels`, and `embedding` as pgvector prints it or else one column per
      dimension. Several labels are written as PostgreSQL prints an array, `{a,b}`.
    - parquet: columns `embedding` and `label` or `labels` (needs pyarrow).

    Examples
    --------
    >>> len(load("digits").X)  # doctest: +SKIP
    1797
    """
    if source in _BUILT_IN:
        return _BUILT_IN[source]()
    path = Path(source)
    readers = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise InputError(
            f"{source} is no data set: give {', '.join(_BUILT_IN)} or a file ending in {', '.join(readers)}"
        )
    if not path.is_file():
        raise InputError(f"there is no file {source}")
    return readers[path.suffix](path)


def _dataset(name: str, X: npt.ArrayLike, labels: Any, names: Sequence[str] | None = None) -> Dataset:
    rows = np.ascontiguousarray(X, dtype=np.float32)
    sets, vocabulary = Vocabulary().read(labels, len(rows))
    found = vocabulary.names
    if names is not None:
        # The file numbers its labels; the vocabulary named them after their numbers.
        found = tuple(str(names[int(number)]) for number in found)
    return Dataset(name, rows, sets, found)


def _read_npz(path: Path) -> Dataset:
    with np.load(path, allow_pickle=False) as file:
        if "X" not in file or not {"Y", "Y_packed"} & set(file.files):
            raise InputError(f"{path} must hold X and Y (or Y_packed), it has {', '.join(file.files)}")
        names = file.get("classes")
        if "Y" in file:
            labels = file["Y"]
        else:
            count = len(names) if names is not None else None
            labels = np.unpackbits(file["Y_packed"], axis=1, count=count)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        numbered = labels.dtype.kind in "biuf"
        return _dataset(path.stem, file["X"], labels, names if numbered else None)


def _read_csv(path: Path) -> Dataset:
    with open(path, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    if not table:
        raise InputError(f"{path} holds no rows")
    columns = list(table[0])
    label = _label_column(path, columns)
    labels = [_read_label_text(row[label]) for row in table]
    try:
        if "embedding" in columns:
            rows = np.array([json.loads(row["embedding"]) for row in table], dtype=np.float32)
        else:
            rest = [column for column in columns if column != label]
            rows = np.array([[float(row[column]) for column in rest] for row in table], dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: every column but {label} must be a number: {error}") from error
    return _dataset(path.stem, rows, labels)


def _label_column(path: Path, columns: Sequence[str]) -> str:
    for name in ("labels", "label"):
        if name in columns:
            return name
    raise InputError(f"{path} needs a column 'labels' or 'label', it has {', '.join(columns)}")


def _read_label_text(text: str | None) -> list[str]:
    """Read one name, or names as PostgreSQL writes an array.

    Examples
    --------
    >>> _read_label_text('{web,"with, comma"}')
    ['web', 'with, comma']
    """
    if not text:
        return []
    if not (text.startswith("{") and text.endswith("}")):
        return [text]
    names = next(csv.reader([text[1:-1]], escapechar="\\", doublequote=False), [])
    return [name for name in names if name and name != "NULL"]


def _read_parquet(path: Path) -> Dataset:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise InputError(f"{path} needs pyarrow to read: pip install pyarrow") from None
    table = parquet.read_table(path)
    label = _label_column(path, table.column_names)
    if "embedding" not in table.column_names:
        raise InputError(f"{path} needs a column 'embedding', it has {', '.join(table.column_names)}")
    rows = np.array(table.column("embedding").to_pylist(), dtype=np.float32)
    return _dataset(path.stem, rows, table.column(label).to_pylist())


def _digits() -> Dataset:
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise InputError("digits come with scikit-learn: pip install 'foh_pg[lab]'") from None
    data = load_digits()
    return _dataset("digits", data.data, data.target)


def _fashion_mnist() -> Dataset:
    if not FASHION_MNIST.is_dir():
        raise InputError("fashion-mnist comes with Debian's package: apt install dataset-fashion-mnist")
    images = [_read_idx(FASHION_MNIST / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    labels = [_read_idx(FASHION_MNIST / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k")]
    rows = np.concatenate(images)
    return _dataset("fashion-mnist", rows.reshape(len(rows), -1), np.concatenate(labels))


def _read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read the format of the MNIST files: two zeros, type, number of dimensions, sizes, data."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    dimensions = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=dimensions, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


_BUILT_IN: dict[str, Callable[[], Dataset]] = {"digits": _digits, "fashion-mnist": _fashion_mnist}
