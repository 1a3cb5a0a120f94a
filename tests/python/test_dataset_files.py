"""CSV and text files, and padded batches."""

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def rows(dataset):
    return [
        {name: value.tolist() for name, value in row.items()}
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
    ]


def test_lines_of_text(file):
    path = file("a.txt", "first\r\n\nzw\u00f6lf\nlast")
    dataset = ds.TextFileDataset(path, shuffle=False)
    assert dataset.get_dataset_size() == 3
    assert dataset.get_col_names() == ["text"]
    assert [row["text"] for row in rows(dataset)] == ["first", "zw\u00f6lf", "last"]
    assert dataset.output_types() == [np.str_]
    assert dataset.output_shapes() == [[]]
    row = next(dataset.create_dict_iterator())
    assert row["text"].asnumpy() == "first"
    assert str(row["text"]) == "first"
    batch = next(dataset.batch(3).create_dict_iterator(output_numpy=True))["text"]
    assert batch.tolist() == ["first", "zw\u00f6lf", "last"]
    assert sorted(r["text"] for r in rows(ds.TextFileDataset(path))) == sorted(
        r["text"] for r in rows(dataset)
    )


def test_functions_of_text(file):
    def tokens(text):
        assert isinstance(text, np.ndarray)
        return np.array(str(text).split(), np.str_), np.array([len(w) for w in str(text).split()])

    dataset = ds.TextFileDataset(file("a.txt", "a b\nlong words here\n"), shuffle=False)
    dataset = dataset.map(tokens, "text", ["tokens", "lengths"])
    assert rows(dataset) == [
        {"tokens": ["a", "b"], "lengths": [1, 1]},
        {"tokens": ["long", "words", "here"], "lengths": [4, 5, 4]},
    ]
    strings = ds.NumpySlicesDataset({"text": ["x", "yz"]}, shuffle=False)
    assert [row["text"] for row in rows(strings)] == ["x", "yz"]
    with pytest.raises(ValueError, match="'text' has no axis to slice"):
        ds.NumpySlicesDataset({"text": np.array("x")})


def test_networks_take_no_text(file):
    model = ms.train.Model(nn.Dense(1, 1), nn.MSELoss(), nn.SGD([ms.Parameter([1.0])], 0.1))
    with pytest.raises(TypeError, match="column 'text' holds text, which no network takes"):
        model.train(1, ds.TextFileDataset(file("a.txt", "a\n")))


def test_several_files_patterns_and_shards(file, tmp_path):
    paths = [file(f"{name}.txt", "".join(f"{name}{i}\n" for i in range(3))) for name in "cab"]
    expected = [f"{name}{i}" for name in "abc" for i in range(3)]
    for given in (paths, str(tmp_path / "*.txt")):
        dataset = ds.TextFileDataset(given, shuffle=False)
        assert [row["text"] for row in rows(dataset)] == expected
    mixed = [row["text"] for row in rows(ds.TextFileDataset(paths, shuffle=ds.Shuffle.FILES))]
    assert sorted(mixed) == expected
    assert all(a[0] != b[0] or int(a[1]) + 1 == int(b[1]) for a, b in zip(mixed, mixed[1:]))  # noqa: B905
    shards = [
        [r["text"] for r in rows(ds.TextFileDataset(paths, num_shards=3, shard_id=shard))]
        for shard in range(3)
    ]
    assert sorted(sum(shards, [])) == expected
    assert len(rows(ds.TextFileDataset(paths, num_samples=4))) == 4
    with pytest.raises(ValueError, match=r"\[TextFileDataset\] num_shards = 2 .* without shard_id"):
        ds.TextFileDataset(paths, num_shards=2)
    with pytest.raises(FileNotFoundError, match="there is no file '.*none"):
        ds.TextFileDataset(str(tmp_path / "none*"))
    with pytest.raises(ValueError, match="shuffle must be"):
        ds.TextFileDataset(paths, shuffle=ds.Shuffle.INFILE)
    with pytest.raises(OSError, match=r"bad\.txt:2: byte 0xff is no UTF-8"):
        ds.TextFileDataset(file("bad.txt", b"a\n\xff"))


def test_csv_with_types_and_names(file):
    path = file("a.csv", '1,2.5,"a, b"\n,,\n')
    dataset = ds.CSVDataset(
        path, column_defaults=[-1, 0.5, "none"], column_names=["i", "f", "s"], shuffle=False
    )
    assert rows(dataset) == [{"i": 1, "f": 2.5, "s": "a, b"}, {"i": -1, "f": 0.5, "s": "none"}]
    assert dataset.output_types() == [np.int32, np.float32, np.str_]
    row = next(dataset.create_dict_iterator())
    assert isinstance(row["i"], ms.Tensor)
    assert row["i"].dtype == ms.int32
    wide = ds.CSVDataset(
        file("b.csv", "9000000000;1e300\n"), ";", [np.int64(0), np.float64(0)], ["i", "f"]
    )
    assert rows(wide) == [{"i": 9000000000, "f": 1e300}]
    types = ds.CSVDataset(path, column_defaults=[int, float, str], column_names=list("ifs"))
    assert {"i": 0, "f": 0.0, "s": ""} in rows(types)


def test_csv_with_a_header_is_text(file):
    path = file("a.csv", b'\xef\xbb\xbfx,y\r\n1,"two\r\nlines"\r\n')
    assert rows(ds.CSVDataset(path, shuffle=False)) == [{"x": "1", "y": "two\r\nlines"}]
    assert ds.CSVDataset(file("b.csv", "x\n")).get_dataset_size() == 0


def test_csv_errors_name_file_and_line(file):
    with pytest.raises(OSError, match=r"a\.csv:3: 3 fields, where there are 2 columns: x, y"):
        ds.CSVDataset(file("a.csv", "x,y\n1,2\n1,2,3\n"))
    with pytest.raises(OSError, match=r"a\.csv:2: 1 fields"):
        ds.CSVDataset(file("a.csv", "x,y\n1\n"))
    with pytest.raises(OSError, match=r"a\.csv:2: column 'y': 'two' is no whole number"):
        rows(ds.CSVDataset(file("a.csv", "x,y\n1,two\n"), column_defaults=[0, 0]))
    with pytest.raises(OSError, match=r"a\.csv:1: there is no line with the names"):
        ds.CSVDataset(file("a.csv", ""))
    with pytest.raises(TypeError, match="column_defaults holds int, float or str values"):
        ds.CSVDataset(file("a.csv", "x\n"), column_defaults=[None])
    with pytest.raises(TypeError, match="column_defaults holds .*got True"):
        ds.CSVDataset(file("a.csv", "x\n"), column_defaults=[True])
    with pytest.raises(ValueError, match="field_delim must be one ASCII character"):
        ds.CSVDataset(file("a.csv", "x\n"), field_delim="::")
    with pytest.raises(ValueError, match=r"\[CSVDataset\] shard_id = 1 .* without num_shards"):
        ds.CSVDataset(file("a.csv", "x\n"), shard_id=1)


def ragged():
    def grow(x):
        n = int(x)
        return np.full((n, 2), n, np.float32), np.arange(n)

    data = ds.NumpySlicesDataset({"x": np.array([1, 3, 2, 4])}, shuffle=False)
    return data.map(grow, "x", ["a", "b"])


def test_padded_batches():
    first, second = ragged().padded_batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert first[0].shape == (2, 3, 2)
    assert first[0][0].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert second[1].tolist() == [[0, 1, 0, 0], [0, 1, 2, 3]]
    info = {"a": ([5, None], -1), "b": (None, 9)}
    for dataset in (
        ragged().padded_batch(3, drop_remainder=True, pad_info=info),
        ragged().batch(3, drop_remainder=True, pad_info=info),
    ):
        ((a, b),) = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert a.shape == (3, 5, 2)
        assert a.dtype == np.float32
        assert a[2].tolist() == [[2, 2], [2, 2], [-1, -1], [-1, -1], [-1, -1]]
        assert b.tolist() == [[0, 9, 9], [0, 1, 2], [0, 1, 9]]


def test_padding_after_a_function_of_the_batch():
    dataset = ragged().padded_batch(2)
    assert dataset.get_batch_size() == 2

    def longer(a, b, info):
        return [np.concatenate([x, x]) for x in a], b

    made = ragged().batch(2, per_batch_map=longer, pad_info={"a": (None, 0), "b": (None, 0)})
    assert [row[0].shape for row in made] == [(2, 6, 2), (2, 8, 2)]


@pytest.mark.parametrize(
    ("info", "kind", "message"),
    [
        ({"z": (None, 0)}, ValueError, "there is no column 'z'"),
        ({"a": ([2, 2], 0), "b": (None, 0)}, ValueError, "along axis 0, more than the 2"),
        ({"a": ([4], 0), "b": (None, 0)}, ValueError, "pad_info has 1 sizes for column 'a'"),
        ({"a": ([-3, 2], 0)}, ValueError, "negative size"),
        ({"a": (None, 0), "b": (None, 0.5)}, ValueError, "cannot be padded with 0.5"),
        ({"a": (None, 0), "b": (None, "x")}, TypeError, "only numbers are padded"),
        ({"a": 3}, TypeError, r"must be \(sizes, value\)"),
        ([1], TypeError, "pad_info must be a dict"),
    ],
)  # fmt: skip
def test_wrong_padding_is_told(info, kind, message):
    with pytest.raises(kind, match=message):
        list(ragged().padded_batch(2, pad_info=info))


def test_columns_without_padding_must_be_equal():
    with pytest.raises(ValueError, match="rows of column 'b' differ"):
        list(ragged().padded_batch(2, pad_info={"a": (None, 0)}))


def position_of(iterator):
    return iterator._iterator.position()


@pytest.mark.parametrize("scope", [True, ds.Shuffle.FILES])
def test_resuming_in_the_middle_of_an_epoch(file, scope):
    def draw(x):
        return np.float64(x) + np.random.rand()

    def made(kind):
        ds.config.set_seed(3)
        numbers = "".join(f"{i}\n" for i in range(9))
        if kind == "csv":
            data = ds.CSVDataset(file("a.csv", "text\n" + numbers), shuffle=scope)
        else:
            paths = [file("a.txt", numbers), file("b.txt", "20\n21\n")]
            data = ds.TextFileDataset(paths, shuffle=scope)
        data = data.map(draw, "text").filter(lambda x: np.random.rand() < 0.7, "text")
        if kind == "padded":
            data = data.map(lambda x: np.full(int(x) % 4, x), "text").padded_batch(2)
        return data.create_tuple_iterator(num_epochs=2, output_numpy=True)

    for kind in ("csv", "text", "padded"):
        whole, all_rows = made(kind), []
        for _ in range(2):
            while True:
                at = position_of(whole)
                row = next(whole, None)
                all_rows.append((at, row if row is None else row[0].tolist()))
                if row is None:
                    break
        for start in range(len(all_rows)):
            resumed = made(kind)
            resumed._iterator.seek(*all_rows[start][0])
            for at, expected in all_rows[start:]:
                assert position_of(resumed) == at
                row = next(resumed, None)
                assert (row if row is None else row[0].tolist()) == expected
    ds.config.set_seed(5489)
