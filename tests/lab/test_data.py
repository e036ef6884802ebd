"""Data sets from files."""

from __future__ import annotations

import numpy as np
import pytest

from foh_pg.errors import InputError
from lab import data


def names_of(dataset, row):
    return {dataset.label_names[i] for i in dataset.sets.row(row)}


class TestNpz:
    def test_numbers_get_their_names_from_classes(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.eye(3, dtype=np.float16), Y=[2, 0, 2], classes=["x", "y", "z"])
        loaded = data.load(str(tmp_path / "a.npz"))
        assert [names_of(loaded, i) for i in range(3)] == [{"z"}, {"x"}, {"z"}]
        assert loaded.X.dtype == np.float32
        assert loaded.name == "a"
        assert not loaded.multi_label

    def test_one_hot_column_is_a_list_of_labels(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.eye(3), Y=np.array([[5], [7], [5]]))
        assert data.load(str(tmp_path / "a.npz")).label_names == ("5", "7")

    def test_names(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.eye(2), Y=np.array(["dog", "cat"]))
        loaded = data.load(str(tmp_path / "a.npz"))
        assert names_of(loaded, 0) == {"dog"}

    @pytest.mark.parametrize("packed", [False, True])
    def test_multi_hot(self, tmp_path, packed):
        hot = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype=np.uint8)
        labels = {"Y_packed": np.packbits(hot, axis=1)} if packed else {"Y": hot}
        np.savez(tmp_path / "a.npz", X=np.eye(3), classes=["x", "y", "z"], **labels)
        loaded = data.load(str(tmp_path / "a.npz"))
        assert [names_of(loaded, i) for i in range(3)] == [{"x", "z"}, set(), {"y"}]
        assert loaded.multi_label
        assert np.array_equal(loaded.labels(np.array([0, 2])), hot[[0, 2]])

    def test_says_what_is_missing(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.eye(3), Z=[1])
        with pytest.raises(InputError, match="it has X, Z"):
            data.load(str(tmp_path / "a.npz"))


class TestCsv:
    def test_a_column_per_dimension(self, tmp_path):
        (tmp_path / "a.csv").write_text('x,y,labels\n1,2,"{web,""a, b""}"\n3,4,plain\n5,6,\n')
        loaded = data.load(str(tmp_path / "a.csv"))
        assert np.array_equal(loaded.X, [[1, 2], [3, 4], [5, 6]])
        assert [names_of(loaded, i) for i in range(3)] == [{"web", "a, b"}, {"plain"}, set()]

    def test_an_embedding_as_pgvector_prints_it(self, tmp_path):
        (tmp_path / "a.csv").write_text('id,embedding,label\n7,"[1,0.5]",a\n8,"[0,2]",b\n')
        loaded = data.load(str(tmp_path / "a.csv"))
        assert np.array_equal(loaded.X, [[1, 0.5], [0, 2]])
        assert loaded.label_names == ("a", "b")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("x,y\n1,2\n", "needs a column 'labels'"),
            ("x,label\none,a\n", "must be a number"),
            ("x,label\n", "no rows"),
            ("x,label\nnan,a\n", "finite"),
            ("x,label\n1,\n", "no row has a label"),
        ],
    )
    def test_says_what_is_wrong(self, tmp_path, text, message):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            data.load(str(tmp_path / "a.csv"))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"embedding": [[1.0, 2.0], [3.0, 4.0]], "labels": [["a", "b"], []]})
    parquet.write_table(table, tmp_path / "a.parquet")
    loaded = data.load(str(tmp_path / "a.parquet"))
    assert np.array_equal(loaded.X, [[1, 2], [3, 4]])
    assert names_of(loaded, 0) == {"a", "b"}
    parquet.write_table(pyarrow.table({"label": ["a"]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="'embedding'"):
        data.load(str(tmp_path / "b.parquet"))


def test_digits():
    pytest.importorskip("sklearn")
    assert data.describe(data.load("digits")) == {
        "name": "digits",
        "rows": 1797,
        "dimensions": 64,
        "labels": 10,
        "labels_per_row": 1.0,
        "multi_label": False,
    }


def test_fashion_mnist_reads_the_files_of_debian(tmp_path, monkeypatch):
    import gzip

    def write(name, array):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes()
        (tmp_path / name).write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))

    for part, rows in (("train", 3), ("t10k", 2)):
        write(f"{part}-images-idx3-ubyte.gz", np.arange(rows * 4).reshape(rows, 2, 2))
        write(f"{part}-labels-idx1-ubyte.gz", np.arange(rows))
    monkeypatch.setattr(data, "FASHION_MNIST", tmp_path)
    loaded = data.load("fashion-mnist")
    assert loaded.X.shape == (5, 4)
    assert [names_of(loaded, i) for i in range(5)] == [{"0"}, {"1"}, {"2"}, {"0"}, {"1"}]
    monkeypatch.setattr(data, "FASHION_MNIST", tmp_path / "nowhere")
    with pytest.raises(InputError, match="apt install"):
        data.load("fashion-mnist")


@pytest.mark.parametrize("source", ["nothing", "a.txt", "missing.npz"])
def test_no_data_set(source):
    with pytest.raises(InputError, match=r"data set|no file"):
        data.load(source)
