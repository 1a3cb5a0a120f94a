"""Worker processes: rows, errors, early ends."""

import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, ops

ROWS = 12


class Squares:
    """A source that does not pickle: it holds a lock, and its class is nothing by name."""

    def __init__(self, size=ROWS):
        self.size, self.lock = size, threading.Lock()

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        with self.lock:
            return np.array([index * index], np.float32), np.int64(os.getpid())


def squares(workers=2, size=ROWS, **options):
    return ds.GeneratorDataset(
        Squares(size), ["square", "process"], shuffle=False, num_parallel_workers=workers, **options
    )


def rows_of(dataset, epochs=1):
    return [tuple(c.tolist() for c in row) for row in
            dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)]  # fmt: skip


def no_children():
    gc.collect()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def shared_mappings():
    return sum("/dev/zero" in line for line in open("/proc/self/maps"))


@pytest.fixture(autouse=True)
def nothing_left():
    gc.collect()
    files, mappings = open_files(), shared_mappings()
    yield
    no_children()
    assert (open_files(), shared_mappings()) == (files, mappings)


def test_rows_come_from_other_processes_in_order():
    rows = rows_of(squares(3))
    assert [row[0][0] for row in rows] == [i * i for i in range(ROWS)]
    assert os.getpid() not in {row[1] for row in rows}
    assert {row[1] for row in rows_of(squares(1))} == {os.getpid()}
    assert {row[1] for row in rows_of(squares(2, python_multiprocessing=False))} == {os.getpid()}


def test_closures_in_map_and_batch():
    offset = {"value": 5}

    def add(square):
        return square + offset["value"], np.int64(os.getpid())

    def double(squares, extra, info):
        assert info.get_batch_num() in (0, 1, 2)
        return [s * 2 for s in squares], [np.int64(os.getpid())] * len(squares)

    dataset = ds.NumpySlicesDataset({"x": np.arange(ROWS, dtype=np.float32)}, shuffle=False)
    dataset = dataset.map(
        add, "x", ["x", "process"], num_parallel_workers=2, python_multiprocessing=True
    )
    dataset = dataset.batch(
        4, per_batch_map=double, num_parallel_workers=2, python_multiprocessing=True
    )
    rows = rows_of(dataset)
    assert np.concatenate([row[0] for row in rows]).tolist() == [2.0 * (i + 5) for i in range(ROWS)]
    assert os.getpid() not in {p for row in rows for p in row[1]}


@pytest.mark.parametrize("max_rowsize", [None, 1, [1, 2]])
@pytest.mark.parametrize("shared", [True, False])
def test_rows_of_every_size_and_dtype(max_rowsize, shared):
    arrays = [
        np.arange(700_000, dtype=np.float32).reshape(700, 1000), np.zeros((0, 3), np.int16),
        np.array("gr\u00fc\u00dfe"), np.array([["a", "bcd"]]), np.array(True), np.float16(1.5),
        np.arange(6).reshape(2, 3)[:, ::-1],
    ]  # fmt: skip
    names = [f"c{i}" for i in range(len(arrays))]
    ds.config.set_enable_shared_mem(shared)
    try:
        dataset = ds.NumpySlicesDataset({"x": np.arange(3)}, shuffle=False).map(
            lambda x: tuple(arrays), "x", names, num_parallel_workers=2,
            python_multiprocessing=True, max_rowsize=max_rowsize,
        )  # fmt: skip
        for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            for got, expected in zip(row, arrays, strict=True):
                assert got.dtype == expected.dtype
                assert np.array_equal(got, expected)
                got[...] = got  # the reader's own
    finally:
        ds.config.set_enable_shared_mem(True)


def test_the_memory_of_a_worker_is_that_of_the_operation_or_the_setting():
    def mapped():
        """MiB of the mappings that workers share with this process."""
        lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
        ranges = [line.split()[0].split("-") for line in lines
                  if "/dev/zero" in line]  # fmt: skip
        return sum(int(end, 16) - int(begin, 16) for begin, end in ranges) >> 20

    def with_memory(**options):
        before = mapped()
        data = ds.NumpySlicesDataset({"x": np.arange(4)})
        data = data.map(lambda x: x, num_parallel_workers=2, python_multiprocessing=True, **options)
        iterator = data.create_tuple_iterator(num_epochs=1)
        next(iterator)
        return (mapped() - before) // 2

    default = ds.config.max_rowsize
    assert with_memory() == with_memory(max_rowsize=-1) == default
    assert with_memory(max_rowsize=[2, 3]) == 3
    ds.config.max_rowsize = 5
    try:
        assert with_memory() == with_memory(max_rowsize=[-1, 2]) == 5
        assert with_memory(max_rowsize=2) == 2
    finally:
        ds.config.max_rowsize = default


def step_of_training():
    net = nn.Dense(64, 64)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    grad = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, optimizer.parameters)

    def step(x):
        loss, grads = grad(x)
        optimizer(grads)
        return float(loss.asnumpy())

    return step


def test_workers_started_after_a_step_of_training():
    step = step_of_training()
    x = ms.Tensor(np.ones((512, 64), np.float32))
    step(x)

    def augment(row):
        return row * np.float32(np.random.rand())

    data = ds.NumpySlicesDataset({"x": np.ones((64, 64), np.float32)})
    data = data.map(augment, "x", num_parallel_workers=2, python_multiprocessing=True).batch(16)
    for _ in range(3):
        losses = [step(row[0]) for row in data.create_tuple_iterator(num_epochs=1)]
        assert len(losses) == 4


def test_an_iterator_of_another_thread():
    rows = []
    thread = threading.Thread(target=lambda: rows.extend(rows_of(squares(2))))
    thread.start()
    thread.join()
    assert [row[0][0] for row in rows] == [i * i for i in range(ROWS)]


def test_forks_while_another_thread_trains():
    stop, steps = threading.Event(), []
    step, x = step_of_training(), np.ones((512, 64), np.float32)

    def train():
        while not stop.is_set():
            steps.append(step(ms.Tensor(x)))

    thread = threading.Thread(target=train)
    thread.start()
    for _ in range(20):
        assert len(rows_of(squares(2, size=2))) == 2
    stop.set()
    thread.join()
    assert steps


def test_a_hundred_forks_between_steps():
    step = step_of_training()
    x = ms.Tensor(np.ones((512, 64), np.float32))
    for _ in range(50):
        step(x)
        assert len(rows_of(squares(2, size=2))) == 2


def test_workers_compute_with_tensors():
    """In one thread of their own, with what the parent had pending."""
    scale = ms.Tensor(np.full((300, 300), 2, np.float32)) * 3
    ops.matmul(scale, scale).asnumpy()
    pending = scale + 1

    def product(x):
        return ops.matmul(pending, ms.Tensor(np.full((300, 1), x, np.float32))).asnumpy()

    data = ds.NumpySlicesDataset({"x": np.arange(4, dtype=np.float32)}, shuffle=False)
    data = data.map(product, "x", num_parallel_workers=2, python_multiprocessing=True)
    for i, (row,) in enumerate(data.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        assert np.array_equal(row, np.full((300, 1), 7.0 * 300 * i, np.float32))


def test_a_pending_tensor_in_a_child_of_fork_is_an_error():
    pending = ms.Tensor(np.ones(3, np.float32)) + 1
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pending.asnumpy()
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 10_000).decode()
    os.close(reader)
    os.waitpid(child, 0)
    assert said.startswith("ValueError: ")
    assert "pending in the process that forked this one" in said
    assert pending.asnumpy().tolist() == [2, 2, 2]


class SpecialError(Exception):
    def __init__(self, code, *, detail):
        super().__init__(f"special {code} {detail}")
        self.code, self.detail = code, detail

    def __reduce__(self):
        return _special, (self.code, self.detail)


def _special(code, detail):
    return SpecialError(code, detail=detail)


def failing(error_of):
    def broken(x):
        if x == 7:
            raise error_of()  # the user's line
        return x

    data = ds.NumpySlicesDataset({"x": np.arange(ROWS)}, shuffle=False)
    return data.map(broken, "x", num_parallel_workers=3, python_multiprocessing=True)


def local_error():
    class LocalError(Exception):
        pass

    return LocalError("cannot be found by name")


@pytest.mark.parametrize(
    ("error_of", "kind", "message"),
    [
        (lambda: KeyError("seven"), KeyError, "seven"),
        (lambda: SpecialError(3, detail="d"), SpecialError, "special 3 d"),
        (local_error, RuntimeError, "'broken' failed in a worker process: .*cannot be found"),
        (lambda: ms.Tensor([1, 2]).reshape(3), ValueError, "reshape"),
        (lambda: SystemExit(3), SystemExit, "3"),
    ],
)  # fmt: skip
def test_an_exception_comes_back_with_its_type_and_traceback(error_of, kind, message):
    iterator = failing(error_of).create_tuple_iterator(num_epochs=1, output_numpy=True)
    for i in range(7):
        assert next(iterator)[0] == i
    for _ in range(2):  # again by every later call
        with pytest.raises(kind, match=message) as caught:
            next(iterator)
    text = str(caught.value.__cause__)
    assert "in broken" in text
    assert "# the user's line" in text
    assert "test_dataset_workers.py" in text


def test_results_that_are_no_arrays():
    data = ds.NumpySlicesDataset({"x": np.arange(3)}, shuffle=False)
    data = data.map(lambda x: object(), "x", num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(TypeError, match="a column holds numbers"):
        rows_of(data)


def test_a_killed_worker_is_an_error_at_once():
    def suicidal(x):
        if x == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    data = ds.NumpySlicesDataset({"x": np.arange(ROWS)}, shuffle=False)
    data = data.map(suicidal, "x", num_parallel_workers=2, python_multiprocessing=True)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    with pytest.raises(RuntimeError, match=r"of 'suicidal' was killed by signal 9 \(Killed\)"):
        list(iterator)
    no_children()


def test_a_worker_killed_between_rows():
    data = squares(2, size=200)
    ds.config.set_prefetch_size(1)
    try:
        iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        worker = next(iterator)[1].item()
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="killed by signal 9"):
            list(iterator)
    finally:
        ds.config.set_prefetch_size(16)


def test_a_worker_that_ends_itself():
    data = ds.NumpySlicesDataset({"x": np.arange(4)}, shuffle=False)
    data = data.map(lambda x: os._exit(3), "x", num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(RuntimeError, match="ended with status 3"):
        rows_of(data)


def test_early_ends_leave_nothing():
    for row in squares(2, size=1000):
        assert row
        break
    no_children()
    iterator = squares(2, size=1000).create_tuple_iterator(num_epochs=1)
    next(iterator)
    iterator.release()
    no_children()
    data = squares(2)
    first, second = (data.create_tuple_iterator(num_epochs=1, output_numpy=True) for _ in "ab")
    next(first), next(second)
    del first  # the other one goes on with the workers of both
    assert len(list(second)) == ROWS - 1
    no_children()  # after its last epoch, though it lives


def test_iterators_of_two_threads_share_workers_and_end_apart():
    data = squares(2, size=4)
    together = threading.Barrier(2)
    read = {"a": [], "b": []}

    def passes(name):
        for _ in range(40):
            together.wait()
            read[name].append(rows_of(data))

    threads = [threading.Thread(target=passes, args=name) for name in read]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in (*read["a"], *read["b"]):
        assert [row[0][0] for row in rows] == [0, 1, 4, 9]
    assert len(read["a"]) == len(read["b"]) == 40


def test_iterators_that_begin_at_once_start_one_set_of_workers():
    data = ds.NumpySlicesDataset({"x": np.arange(4)}, shuffle=False)
    data = data.map(lambda x: os.getpid(), "x", num_parallel_workers=1, python_multiprocessing=True)
    for _ in range(10):
        iterators = [data.create_tuple_iterator(num_epochs=1, output_numpy=True) for _ in "ab"]
        together = threading.Barrier(2)
        processes = set()

        def begin(iterator, together=together, processes=processes):
            together.wait()
            processes.add(next(iterator)[0].item())

        threads = [threading.Thread(target=begin, args=(iterator,)) for iterator in iterators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(processes) == 1


def test_what_workers_print_is_seen(capfd):
    data = ds.NumpySlicesDataset({"x": np.arange(4)}, shuffle=False)
    data = data.map(
        lambda x: print(f"row {x}\n", end="") or x,
        "x",
        num_parallel_workers=2,
        python_multiprocessing=True,
    )
    rows_of(data)
    assert sorted(capfd.readouterr().out.splitlines()) == [f"row {i}" for i in range(4)]


def test_a_busy_worker_ends_with_its_iterator():
    """It waits for something that never comes."""
    never = threading.Event()

    def stuck(x):
        return x if x < 2 else never.wait()

    data = ds.NumpySlicesDataset({"x": np.arange(ROWS)}, shuffle=False)
    data = data.map(stuck, "x", num_parallel_workers=2, python_multiprocessing=True)
    iterator = data.create_tuple_iterator(num_epochs=1)
    next(iterator)
    del iterator
    no_children()


def test_resuming_in_the_middle_of_an_epoch():
    def draw(x):
        return np.array([x, np.random.rand()])

    def made():
        ds.config.set_seed(3)
        data = ds.NumpySlicesDataset({"x": np.arange(ROWS)}, shuffle=True)
        return data.map(draw, "x", num_parallel_workers=2, python_multiprocessing=True).batch(2)

    def read(iterator):
        return [row[0].tolist() for row in iterator]

    whole = made().create_tuple_iterator(num_epochs=2, output_numpy=True)
    epochs = [read(whole), read(whole)]
    resumed = made().create_tuple_iterator(num_epochs=2, output_numpy=True)
    next(resumed)
    resumed._iterator.seek(0, 4)
    assert [read(resumed), read(resumed)] == [epochs[0][4:], epochs[1]]
    ds.config.set_seed(5489)


def test_wrong_options_are_told():
    data = ds.NumpySlicesDataset({"x": np.arange(3)})
    with pytest.raises(TypeError, match="python_multiprocessing must be a bool"):
        data.map(lambda x: x, python_multiprocessing="yes")
    for wrong in (0, -2, 2.5, [], [1], [1, 2, 3], [1, 0]):
        with pytest.raises(ValueError, match="max_rowsize must be a positive number"):
            data.map(lambda x: x, python_multiprocessing=True, max_rowsize=wrong)
    with pytest.raises(TypeError, match="there is no argument 'workers'"):
        data.map(lambda x: x, workers=3)
    with pytest.raises(ValueError, match="num_parallel_workers must be 1 to"):
        squares(0)


def test_reading_a_pipeline_of_functions_inside_a_function():
    def nested(x):
        return len(list(ds.NumpySlicesDataset({"y": np.arange(3)}).map(lambda y: y)))

    data = ds.NumpySlicesDataset({"x": np.arange(3)})
    for processes in (False, True):
        with pytest.raises(RuntimeError, match="cannot be read within such a function"):
            rows_of(data.map(nested, "x", python_multiprocessing=processes))


PROGRAM = """
    import os, signal, sys, threading
    import lamella.alias

    # A shell's background jobs, so perhaps this test, begin with the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    import mindspore as ms, mindspore.dataset as ds, numpy as np

    never = threading.Event()

    def row(x):
        if x == 3 and sys.argv[1] == "stuck":
            os.write(1, f"stuck {os.getpid()}\\n".encode())
            never.wait()
        return x

    data = ds.NumpySlicesDataset({"x": np.arange(1000)}, shuffle=False)
    data = data.map(row, "x", num_parallel_workers=2, python_multiprocessing=sys.argv[2] == "yes")
    iterator = data.create_tuple_iterator(num_epochs=1)
    next(iterator)
    if sys.argv[1] == "raise":
        raise ValueError("on purpose")
    if sys.argv[1] == "stuck":
        list(iterator)
"""


def program(tmp_path, *arguments, text=PROGRAM):
    path = pathlib.Path(tmp_path, "program.py")
    path.write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, path, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("processes", ["yes", "no"])
def test_the_interpreter_ends_with_an_iterator_open(tmp_path, processes):
    for how, status, said in (("end", 0, ""), ("raise", 1, "ValueError: on purpose\n")):
        run = program(tmp_path, how, processes)
        _, errors = run.communicate(timeout=120)
        assert run.returncode == status, errors
        assert errors.endswith(said)
        assert bool(errors) == bool(said)


def test_ctrl_c_ends_a_program_and_its_workers(tmp_path):
    run = program(tmp_path, "stuck", "yes")
    worker = int(run.stdout.readline().split()[1])
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=120)
    assert run.returncode in (1, 130, -signal.SIGINT)
    assert errors.endswith("KeyboardInterrupt\n")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_workers_end_with_a_killed_program(tmp_path):
    run = program(tmp_path, "stuck", "yes")
    assert run.stdout.readline().startswith("stuck")
    run.kill()
    run.communicate(timeout=120)  # until nobody holds its streams any more


PRINTING = """
    import sys
    import lamella.alias
    import mindspore.dataset as ds, numpy as np

    def row(x):
        print("row", x)
        return x

    print("before")
    data = ds.NumpySlicesDataset({"x": np.arange(2)}, shuffle=False)
    data = data.map(row, "x", num_parallel_workers=2, python_multiprocessing=True)
    for _ in range(2):
        print("between", file=sys.stderr if sys.argv[1] == "stderr" else sys.stdout)
        print(len(list(data.create_tuple_iterator(num_epochs=1))))
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_is_printed_is_printed_once(tmp_path, stream):
    said, errors = program(tmp_path, stream, text=PRINTING).communicate(timeout=120)
    assert sorted(said.split("\n") + errors.split("\n")) == sorted(
        ["before", *["between", "2", "row 0", "row 1"] * 2, "", ""]
    )


TOO_LARGE = """
    import resource

    import lamella.alias
    import mindspore.dataset as ds, numpy as np

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)

    def row(x):
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # of the worker
        return np.zeros(1 << 29 if x == 0 else 1, np.uint8)

    data = ds.NumpySlicesDataset({"x": np.arange(3)}, shuffle=False)
    data = data.map(row, "x", num_parallel_workers=1, python_multiprocessing=True)
    first, second = (data.create_tuple_iterator(num_epochs=1, output_numpy=True) for _ in "ab")
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), hard))
    for iterator, mine in ((first, True), (second, False)):
        try:
            next(iterator)
        except (MemoryError, RuntimeError) as error:
            print(type(error).__name__, " | ".join(str(error).splitlines()))
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    print([row.size for row, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])
"""


def test_a_row_that_cannot_be_taken_ends_its_workers(tmp_path):
    run = program(tmp_path, text=TOO_LARGE)
    said, errors = run.communicate(timeout=120)
    first, second, sizes = said.splitlines()
    assert first.startswith("MemoryError no memory for an array u8[536870912]")
    assert re.match(r"RuntimeError \[dataset\] a row of worker process \d+ of 'row' could not be "
                    r"taken: no memory", second) or second == first  # fmt: skip
    assert sizes == "[536870912, 1, 1]"
    assert (run.returncode, errors) == (0, "")


READING_THREAD = """
    import sys, threading
    import lamella.alias
    import mindspore as ms, mindspore.dataset as ds, numpy as np

    started = threading.Event()

    class Source:
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            return np.full((100, 100), index, np.float32)

    data = ds.GeneratorDataset(Source(), ["x"], num_parallel_workers=int(sys.argv[1])).map(
        lambda x: x + 1, num_parallel_workers=2, python_multiprocessing=False)

    def read():
        while True:
            for (x,) in data.create_tuple_iterator(num_epochs=1):
                (x * 2).asnumpy()
                started.set()

    for _ in range(3):
        threading.Thread(target=read, daemon=True).start()
    started.wait()
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_interpreter_ends_under_threads_that_read(tmp_path, workers):
    for _ in range(3):
        run = program(tmp_path, workers, text=READING_THREAD)
        _, errors = run.communicate(timeout=120)
        assert (run.returncode, errors) == (0, "")
