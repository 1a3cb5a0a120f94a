"""Datasets: rows, transforms, users' functions."""

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import transforms, vision

IMAGES = np.random.default_rng(0).integers(0, 255, (20, 6, 5, 3)).astype(np.uint8)
LABELS = np.arange(20, dtype=np.int32)


def write_digits(folder):
    """Three images in the files of MNIST."""
    for name, sizes in (("images-idx3", (3, 2, 2)), ("labels-idx1", (3,))):
        header = bytes([0, 0, 8, len(sizes)]) + b"".join(size.to_bytes(4, "big") for size in sizes)
        (folder / f"train-{name}-ubyte").write_bytes(header + bytes(int(np.prod(sizes))))


def slices(**options):
    return ds.NumpySlicesDataset(
        {"image": IMAGES, "label": LABELS}, shuffle=options.pop("shuffle", False), **options
    )


def test_rows_of_arrays():
    dataset = slices()
    assert dataset.get_col_names() == ["image", "label"]
    assert dataset.get_dataset_size() == 20
    rows = list(dataset.create_dict_iterator(num_epochs=1))
    assert len(rows) == 20
    assert isinstance(rows[3]["image"], ms.Tensor)
    assert np.array_equal(rows[3]["image"].asnumpy(), IMAGES[3])
    assert rows[3]["label"].item() == 3
    first = next(iter(dataset.create_tuple_iterator(output_numpy=True)))
    assert isinstance(first[0], np.ndarray)
    first[0][:] = 0  # the reader's own
    assert IMAGES[0].any()


def test_operations():
    dataset = slices().map(vision.HWC2CHW(), "image").batch(8, drop_remainder=True)
    assert dataset.get_batch_size() == 8
    assert dataset.get_dataset_size() == 2
    assert dataset.output_shapes() == [[8, 3, 6, 5], [8]]
    (image, label), _ = list(dataset)
    assert np.array_equal(image.asnumpy(), IMAGES[:8].transpose(0, 3, 1, 2))
    assert sorted(row[1].item() for row in slices(shuffle=True)) == list(range(20))
    assert [r[1].item() for r in slices().skip(2).take(3)] == [2, 3, 4]
    assert len(list(slices().repeat(2))) == 40
    assert [r[1].item() for r in slices().filter(lambda x: x % 5 == 0, "label")] == [0, 5, 10, 15]
    assert slices().rename("label", "target").get_col_names() == ["image", "target"]
    assert slices().project("label").get_col_names() == ["label"]
    assert len(list(slices() + slices())) == 40
    parts = slices().split([0.75, 0.25], randomize=False)
    assert [part.get_dataset_size() for part in parts] == [15, 5]


def test_parts_of_a_split_stay_apart_in_every_epoch():
    for dataset in (slices(shuffle=True), slices(shuffle=False)):
        for sizes in ([15, 5], [0.75, 0.25]):
            train, test = dataset.split(sizes)
            iterators = [
                part.create_tuple_iterator(num_epochs=3, output_numpy=True)
                for part in (train.shuffle(15), test)
            ]
            epochs = [
                [frozenset(row[1].item() for row in iterator) for iterator in iterators]
                for _ in range(3)
            ]
            assert epochs[0] == epochs[1] == epochs[2]
            assert sorted([*epochs[0][0], *epochs[0][1]]) == list(range(20))
    for wrong in ([15, 4], [0.5, 0.4], [20, 0]):
        with pytest.raises(ValueError, match=r"\[split\]"):
            slices().split(wrong)
    for wrong in ([], 3, ["15", "5"]):
        with pytest.raises(TypeError, match="sizes must be a list"):
            slices().split(wrong)


def test_sizes_of_the_parts_of_a_split():
    for sizes in ([15, 5], [np.int64(15), np.int32(5)], [0.75, 0.25], [np.float32(0.75), 0.25]):
        assert [part.get_dataset_size() for part in slices().split(sizes)] == [15, 5]
    parts = slices().take(5).split([0.5, 0.5])
    assert [part.get_dataset_size() for part in parts] == [3, 2]


def test_a_released_iterator_says_so():
    for read in (0, 1, 10):
        iterator = slices().create_dict_iterator(num_epochs=1)
        for _ in range(read):
            next(iterator)
        iterator.release()
        iterator.stop()
        for _ in range(2):
            with pytest.raises(ValueError, match="it was closed"):
                next(iterator)
            with pytest.raises(ValueError, match="it was closed"):
                iterator._iterator.seek(0, 1)
        assert iterator._iterator.position() == (0, read)
        assert iterator._iterator.columns() == ["image", "label"]


def test_a_function_cannot_release_the_iterator_that_waits_for_it():
    iterator = slices().map(lambda x: iterator.release(), "label").create_tuple_iterator()
    with pytest.raises(RuntimeError, match="cannot be released within such a function"):
        next(iterator)


def test_epochs_of_one_iterator():
    iterator = slices().batch(10).create_dict_iterator(num_epochs=2)
    assert [len(list(iterator)) for _ in range(2)] == [2, 2]
    with pytest.raises(RuntimeError):
        iter(iterator)


def test_generators_by_number_and_by_running():
    class Numbered:
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return np.array([index], np.float32), index

    rows = list(ds.GeneratorDataset(Numbered(), ["x", "y"], shuffle=False))
    assert [row[1].item() for row in rows] == list(range(5))

    def generate():
        for i in range(4):
            yield np.float32(i), np.int32(i * i)

    dataset = ds.GeneratorDataset(lambda: generate(), ["x", "y"])
    assert [row[1].item() for row in dataset] == [0, 1, 4, 9]
    assert [row[1].item() for row in dataset] == [0, 1, 4, 9]


def test_functions_of_rows_and_batches():
    def both(image, label):
        return image.astype(np.float32) / 255, label + 1, np.int64(7)

    dataset = slices().map(both, ["image", "label"], ["image", "label", "extra"])
    row = next(iter(dataset))
    assert row[1].item() == 1
    assert row[2].item() == 7

    def halves(images, labels, info):
        assert info.get_epoch_num() == 0
        return images[: len(images) // 2], labels[: len(labels) // 2]

    dataset = slices().batch(10, per_batch_map=halves)
    assert [row[1].shape for row in dataset] == [(5,), (5,)]


def test_errors_in_functions_reach_the_reader():
    def broken(label):
        if label == 5:
            raise KeyError("five")
        return label

    iterator = iter(slices().map(broken, "label", num_parallel_workers=2))
    for _ in range(5):
        next(iterator)
    for _ in range(3):  # again by every later call
        with pytest.raises(KeyError, match="five") as caught:
            next(iterator)
        assert any(entry.name == "broken" for entry in caught.traceback)


def test_transforms_as_functions():
    image = IMAGES[0]
    rescaled = vision.Rescale(1 / 255.0, 0.0)(image)
    assert np.allclose(rescaled, image / 255, atol=1e-6)
    normalised = vision.Normalize([1, 2, 3], [2, 2, 2])(image)
    assert np.allclose(normalised, (image - np.array([1, 2, 3])) / 2)
    assert vision.Resize((3, 4))(image).shape == (3, 4, 3)
    assert transforms.TypeCast(ms.int32)(image).dtype == np.int32
    assert np.array_equal(transforms.OneHot(4)(np.int32(2)), [0, 0, 1, 0])
    assert transforms.Compose([vision.HWC2CHW(), vision.Rescale(2.0, 0.0)])(image).shape == (
        3,
        6,
        5,
    )


def test_rows_are_the_readers_own():
    """Whatever a user's object gives stays its own: neither a reader who writes nor a tensor whose
    memory is used again changes it."""
    kept = np.arange(6, dtype=np.float32).reshape(6, 1)
    constant = np.full(1, 5, np.float32)

    class Numbered:
        def __len__(self):
            return len(kept)

        def __getitem__(self, index):
            return kept[index]

    def pipelines():
        options = {"column_names": ["x"], "shuffle": False}
        numbered = ds.GeneratorDataset(Numbered(), **options)
        yield numbered, kept[:, 0]
        yield numbered.map(transforms.TypeCast(ms.float32)), kept[:, 0]
        yield numbered.map(lambda x: x), kept[:, 0]
        yield numbered.map(lambda x: constant), [5] * 6
        yield numbered.filter(lambda x: x.fill(7) is None), kept[:, 0]
        yield ds.GeneratorDataset(lambda: iter(kept), ["x"]), kept[:, 0]
        yield ds.NumpySlicesDataset(kept, **options), kept[:, 0]

    for dataset, expected in pipelines():
        tensors = dataset.create_tuple_iterator(num_epochs=1)
        assert [((x - 0.5) * 2).item() for (x,) in tensors] == [(v - 0.5) * 2 for v in expected]
        for (x,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            x += 100
        assert kept[:, 0].tolist() == list(range(6))
        assert constant.tolist() == [5]


def test_rows_of_memory_that_cannot_be_written(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(6, dtype=np.float32).reshape(6, 1))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    dataset = ds.GeneratorDataset([row for row in mapped], ["x"], shuffle=False)  # noqa: C416
    tensors = dataset.create_tuple_iterator(num_epochs=1)
    assert [((x - 0.5) * 2).item() for (x,) in tensors] == [(v - 0.5) * 2 for v in range(6)]
    for (x,) in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
        x += 100


def test_what_a_transform_gives_is_not_its_input():
    gray = np.ones((2, 3, 1), np.uint8)
    for transform in (
        vision.RandomHorizontalFlip(0.0),
        vision.HWC2CHW(),
        transforms.TypeCast(ms.uint8),
        transforms.Compose([vision.HWC2CHW(), transforms.TypeCast(ms.uint8)]),
    ):
        transform(gray)[...] = 7
        assert (gray == 1).all()


def test_samplers_and_shards():
    assert [r[1].item() for r in slices(shuffle=None, sampler=ds.SequentialSampler(3, 2))] == [3, 4]
    parts = [[r[1].item() for r in slices(num_shards=2, shard_id=shard)] for shard in range(2)]
    assert sorted(parts[0] + parts[1]) == list(range(20))
    with pytest.raises(ValueError, match="num_shards = 2 was given without shard_id"):
        slices(num_shards=2)
    with pytest.raises(ValueError, match="shard_id = 0 was given without num_shards"):
        slices(shard_id=0)
    assert [r[1].item() for r in slices(shuffle=ds.Shuffle.FALSE)] == list(range(20))


def test_a_samplers_number_of_samples_is_checked():
    class Backwards(ds.Sampler):
        def __iter__(self):
            return iter(range(19, -1, -1))

    dataset = slices(shuffle=None, sampler=Backwards(3))
    assert [row[1].item() for row in dataset] == [19, 18, 17]
    for samples in (0, -1):
        with pytest.raises(ValueError, match="num_samples must be at least 1"):
            slices(shuffle=None, sampler=Backwards(samples))


def test_what_sources_and_samplers_cannot_do_is_refused(tmp_path):
    write_digits(tmp_path)
    assert len(ds.MnistDataset(str(tmp_path), "train", num_parallel_workers=2)) == 3
    for workers in (0, -3):
        with pytest.raises(ValueError, match="num_parallel_workers"):
            slices(num_parallel_workers=workers)
        with pytest.raises(ValueError, match="num_parallel_workers"):
            ds.MnistDataset(str(tmp_path), "train", num_parallel_workers=workers)
    for refused in (
        lambda: ds.MnistDataset(str(tmp_path), cache=object()),
        lambda: ds.DistributedSampler(2, 0, offset=1),
        lambda: ds.RandomSampler(shuffle=ds.Shuffle.PARTIAL),
        lambda: slices().output_shapes(estimate=True),
    ):
        with pytest.raises(NotImplementedError):
            refused()


def test_settings():
    ds.config.prefetch_size = 8
    assert ds.config.get_prefetch_size() == 8
    ds.config.set_prefetch_size(16)
    assert ds.config.prefetch_size == 16
    assert ds.config.get_auto_num_workers() is False
    ds.config.set_auto_num_workers(True)
    assert ds.config.get_auto_num_workers() is True
    ds.config.set_auto_num_workers(False)
    workers = ds.config.get_num_parallel_workers()
    ds.config.set_num_parallel_workers(3)
    assert ds.config.get_num_parallel_workers() == 3
    ds.config.set_num_parallel_workers(workers)
    assert ds.config.get_multiprocessing_start_method() == "fork"
    with pytest.raises(NotImplementedError, match="only 'fork'"):
        ds.config.set_multiprocessing_start_method("spawn")
    for setting in (ds.config.set_prefetch_size, ds.config.set_num_parallel_workers):
        for wrong in (0, -1):
            with pytest.raises(ValueError, match="must be from 1 to"):
                setting(wrong)
        with pytest.raises(TypeError):
            setting("many")
    for wrong in (0, -1, 2.5, "many"):
        with pytest.raises(ValueError, match="max_rowsize must be a positive number"):
            ds.config.max_rowsize = wrong
    with pytest.raises(TypeError, match="enable must be a bool"):
        ds.config.set_auto_num_workers(1)


def test_stop_iteration_in_a_users_function_is_no_end_of_the_rows():
    class Source:
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return np.float32(index) if index != 2 else next(iter([]))

    rows = ds.GeneratorDataset(Source(), ["x"], shuffle=False)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(rows.create_tuple_iterator(num_epochs=1))


def test_more_workers_than_any_machine_has_are_refused():
    for workers in (0, -1, 100_000):
        with pytest.raises(ValueError, match="num_parallel_workers"):
            ds.NumpySlicesDataset([1, 2]).map(lambda x: x, num_parallel_workers=workers)


PAIR = ds.NumpySlicesDataset(([1, 2], [3, 4]), ["a", "b"])
SAME_NAMES = {
    "GeneratorDataset": lambda: ds.GeneratorDataset([(1, 2)], ["a", "a"]),
    "GeneratorDataset of a function": lambda: ds.GeneratorDataset(lambda: [(1, 2)], ["a", "a"]),
    "NumpySlicesDataset": lambda: ds.NumpySlicesDataset(([1], [2]), ["a", "a"]),
    "rename": lambda: PAIR.rename(["b"], ["a"]),
    "project": lambda: PAIR.project(["a", "a"]),
    "zip": lambda: PAIR.zip(PAIR),
    "map": lambda: PAIR.map(lambda a: (a, a), ["b"], ["a", "c"]),
    "batch": lambda: PAIR.batch(
        2, per_batch_map=lambda b, info: (b, b), input_columns=["b"], output_columns=["a", "c"]
    ),
}


@pytest.mark.parametrize("case", SAME_NAMES)
def test_a_name_of_two_columns_is_refused(case):
    with pytest.raises(ValueError, match=rf"^\[{case.split()[0]}\] .*column 'a'"):
        SAME_NAMES[case]()


def test_what_can_be_read_once_is_not_read_as_empty():
    once = ds.GeneratorDataset((np.float32(i) for i in range(3)), ["x"])
    epochs = once.create_tuple_iterator(num_epochs=2)
    assert len(list(epochs)) == 3
    with pytest.raises(ValueError, match=r"\[GeneratorDataset\] source is a generator .* once"):
        list(epochs)


def test_an_iterator_that_begins_anew_is_read_in_every_epoch():
    class Counting:
        def __iter__(self):
            self.next = 0
            return self

        def __next__(self):
            self.next += 1
            if self.next > 3:
                raise StopIteration
            return (np.float32(self.next),)

    rows = ds.GeneratorDataset(Counting(), ["x"])
    assert rows.get_dataset_size() == 3
    for _ in range(2):
        assert [row[0].item() for row in rows.create_tuple_iterator()] == [1, 2, 3]
    assert len(list(rows.repeat(2).create_tuple_iterator())) == 6
    nothing = ds.GeneratorDataset(iter(()), ["x"])
    assert [len(list(nothing.create_tuple_iterator())) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f2", "f4", "f8"])
def test_elements_in_the_other_order_of_bytes(dtype):
    swapped = np.array([1, 2, 300], dtype).astype(np.dtype(dtype).newbyteorder())
    rows = ds.GeneratorDataset([(swapped,)], ["x"]).create_tuple_iterator(output_numpy=True)
    [[row]] = list(rows)
    assert row.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(row, [1, 2, 300])


@pytest.mark.parametrize("value", [np.array(["2020-01-01"], "M8[D]"), np.array([object()])])
def test_columns_of_other_things_are_refused(value):
    with pytest.raises(TypeError, match=r"\[dataset\] a column holds numbers, bools or strings, "):
        list(ds.GeneratorDataset([(value,)], ["x"]))
