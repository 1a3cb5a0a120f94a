"""Random numbers inside users' functions: a row's own, whatever makes it, and no one else's."""

import random
import threading

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore.dataset import transforms, vision

EXTRACTED = random.random  # as `from random import random` before everything else
ROWS = 16
WORKERS = [(1, False), (2, False), (8, False), (1, True), (2, True), (8, True)]


@pytest.fixture(autouse=True)
def seed():
    ds.config.set_seed(11)
    yield
    ds.config.set_seed(5489)


def labels(**options):
    return ds.NumpySlicesDataset({"label": np.arange(ROWS)}, shuffle=True, **options)


def several():
    """Draws in every way there is."""
    return [*looked_up(), EXTRACTED()]


def looked_up():
    """The same but for what was taken from its module before, which knows no threads."""
    return [
        np.random.rand(), np.random.randn(), np.random.randn(3)[1], np.random.normal(0, 1),
        np.random.permutation(1000)[0] + np.random.rand(), random.random(), random.gauss(0, 1),
        random.uniform(0, 1), random.getrandbits(60) / 2**60,
    ]  # fmt: skip


def draw(label):
    return np.array([label, *several()])


class Numbered:
    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        return draw(index)


def running():
    for index in range(ROWS):
        yield draw(index)


def batched(rows, info):
    return [np.array([row, *several()]) for row in rows]


def chosen(rows):
    return np.random.rand() < 0.5 and random.random() < 0.9


PIPELINES = {
    "map": lambda n, p: labels().map(
        draw, "label", num_parallel_workers=n, python_multiprocessing=p
    ),
    "map after a shuffle, nested": lambda n, p: labels()
    .shuffle(5)
    .map(
        transforms.Compose([lambda x: x, draw]), "label",
        num_parallel_workers=n, python_multiprocessing=p,
    ),
    "two maps": lambda n, p: labels()
    .map(draw, "label", num_parallel_workers=n, python_multiprocessing=p)
    .map(
        lambda x: np.append(x, several()), "label",
        num_parallel_workers=n, python_multiprocessing=p,
    ),
    "source by number": lambda n, p: ds.GeneratorDataset(
        Numbered(), ["label"], num_parallel_workers=n, python_multiprocessing=p
    ),
    "generator": lambda n, p: ds.GeneratorDataset(
        running, ["label"], num_parallel_workers=n, python_multiprocessing=p
    ),
    "per batch": lambda n, p: labels().batch(
        2, per_batch_map=batched, num_parallel_workers=n, python_multiprocessing=p
    ),
}  # fmt: skip


def read(dataset, epochs=2):
    iterator = dataset.create_dict_iterator(num_epochs=epochs, output_numpy=True)
    return [np.array([row["label"] for row in iterator]) for _ in range(epochs)]


@pytest.mark.parametrize("kind", PIPELINES)
def test_draws_differ_repeat_and_know_no_workers(kind):
    first = None
    for workers, processes in WORKERS:
        ds.config.set_seed(11)
        epochs = read(PIPELINES[kind](workers, processes))
        first = first or epochs
        assert all(np.array_equal(a, b) for a, b in zip(first, epochs, strict=True))
    rows = np.concatenate(first).reshape(2 * ROWS, -1)
    assert np.array_equal(np.sort(rows[:, 0]), np.repeat(np.arange(ROWS), 2))
    assert np.unique(rows[:, 1:]).size == rows[:, 1:].size
    ds.config.set_seed(12)
    other = np.concatenate(read(PIPELINES[kind](2, False))).reshape(2 * ROWS, -1)
    assert not np.intersect1d(rows[:, 1:], other[:, 1:]).size


def test_filters_and_batch_sizes_that_draw():
    def run(workers):
        ds.config.set_seed(11)
        kept = labels().map(lambda x: x, "label", num_parallel_workers=workers)
        kept = kept.filter(chosen, "label").batch(lambda info: int(np.random.randint(1, 4)))
        iterator = kept.create_tuple_iterator(num_epochs=2, output_numpy=True)
        return [[row[0].tolist() for row in iterator] for _ in range(2)]

    runs = [run(workers) for workers in (1, 2, 8)]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0] != runs[0][1]


def test_samplers_that_draw():
    class Mixed(ds.Sampler):
        def __iter__(self):
            yield from np.random.permutation(ROWS)[: ROWS // 2]

    def run(workers):
        ds.config.set_seed(11)
        dataset = ds.NumpySlicesDataset({"label": np.arange(ROWS)}, sampler=Mixed())
        return read(dataset.map(draw, "label", num_parallel_workers=workers), epochs=3)

    runs = [run(workers) for workers in (1, 2, 8)]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])
    assert len({tuple(epoch[:, 0]) for epoch in runs[0]}) == 3
    dataset = ds.NumpySlicesDataset({"label": np.arange(ROWS)}, sampler=Mixed(3))
    assert dataset.get_dataset_size() == len(list(dataset)) == 3


def test_a_whole_program_repeats_under_its_seed():
    def run(seed):
        ms.set_seed(seed)
        return np.concatenate(read(PIPELINES["map"](2, True)))

    assert np.array_equal(run(3), run(3))
    assert not np.array_equal(run(3), run(4))


def outside_draws(count):
    """What the program itself draws, from generators in a known state."""
    np.random.seed(5)
    random.seed(5)
    np.random.randn()  # leaves a second number behind
    random.gauss(0, 1)
    return [looked_up() for _ in range(count)]


@pytest.mark.parametrize("processes", [False, True])
def test_the_programs_own_generators_go_on(processes):
    expected = outside_draws(ROWS)
    np.random.seed(5)
    random.seed(5)
    np.random.randn()
    random.gauss(0, 1)
    got = []
    dataset = labels().map(draw, "label", num_parallel_workers=2, python_multiprocessing=processes)
    for _ in dataset.create_tuple_iterator(num_epochs=1):
        got.append(looked_up())
    assert got == expected


def test_threads_that_draw_while_a_row_is_made():
    """The row waits in the middle of its function while the program draws."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(label):
        first = several()
        inside.set()
        assert go_on.wait(60)
        return np.array([label, *first, *several()])

    def one(dataset):
        return next(iter(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)))[0]

    dataset = ds.NumpySlicesDataset({"label": np.arange(1)}, shuffle=False)
    go_on.set()
    alone = one(dataset.map(slow, "label", num_parallel_workers=1))
    go_on.clear()
    inside.clear()
    dataset.reset()
    rows = []
    (expected,) = outside_draws(1)
    np.random.seed(5)
    random.seed(5)
    np.random.randn()
    random.gauss(0, 1)
    reader = threading.Thread(
        target=lambda: rows.append(one(dataset.map(slow, "label", num_parallel_workers=1)))
    )
    reader.start()
    assert inside.wait(60)
    got = looked_up()
    state, python_state = np.random.get_state(), random.getstate()
    np.random.seed(1)
    random.seed(1)
    looked_up()
    np.random.set_state(state)
    random.setstate(python_state)
    go_on.set()
    reader.join()
    assert np.array_equal(rows[0], alone)
    assert got == expected
    assert random.random.__self__ is random._inst
    assert type(random._inst) is random.Random


def test_seeding_inside_a_function_stays_inside():
    def seeded(label):
        np.random.seed(int(label))
        random.seed(int(label))
        return np.array([np.random.rand(), random.random()])

    np.random.seed(5)
    random.seed(5)
    expected = np.random.rand(), random.random()
    np.random.seed(5)
    random.seed(5)
    dataset = ds.NumpySlicesDataset({"label": np.arange(4)}, shuffle=False)
    rows = [row[0] for row in dataset.map(seeded, "label", num_parallel_workers=2)]
    for label, row in enumerate(rows):
        generator = np.random.RandomState(label)
        assert row.asnumpy().tolist() == [generator.rand(), random.Random(label).random()]
    assert (np.random.rand(), random.random()) == expected


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937])
def test_a_generator_that_the_user_has_set(generator):
    ours = np.random.get_bit_generator()
    theirs = generator(3)
    np.random.set_bit_generator(theirs)
    try:
        epochs = read(labels().map(draw, "label", num_parallel_workers=2))
        assert np.random.get_bit_generator() is theirs
    finally:
        np.random.set_bit_generator(ours)
    ds.config.set_seed(11)
    expected = read(labels().map(draw, "label", num_parallel_workers=2))
    assert all(np.array_equal(a, b) for a, b in zip(epochs, expected, strict=True))


def test_transforms_called_on_arrays_draw_anew():
    image = np.arange(32 * 32, dtype=np.float32).reshape(32, 32, 1)
    crop = vision.RandomCrop(4)
    assert len({crop(image).tobytes() for _ in range(20)}) > 10

    def run(workers, processes):
        ds.config.set_seed(11)
        dataset = labels().map(
            lambda label: np.stack([crop(image), crop(image)]), "label",
            num_parallel_workers=workers, python_multiprocessing=processes,
        )  # fmt: skip
        return np.concatenate(read(dataset))

    rows = run(1, False)
    assert len({crop.tobytes() for crop in rows.reshape(-1, 16)}) > 1.5 * len(rows)
    for workers, processes in WORKERS:
        assert np.array_equal(run(workers, processes), rows)
