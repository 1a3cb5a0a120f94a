"""The profiler: what it writes, and that it is true of the program."""

import csv
import gc
import json

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Model, Tensor, nn, ops
from mindspore.profiler import (
    Profiler,
    ProfilerActivity,
    ProfilerLevel,
    profile,
    schedule,
    tensorboard_trace_handler,
)

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def long_window():
    """Windows as long as a program's, whatever LAMELLA_WINDOW says."""
    before = lamella._native.window()
    lamella.set_window(0)
    yield
    lamella.set_window(before)


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


def training(batches=3):
    images = RNG.normal(size=(8 * batches, 1, 28, 28)).astype(np.float32)
    labels = (np.arange(8 * batches) % 10).astype(np.int32)
    net = LeNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Adam(net.trainable_params(), 1e-3))
    return model, ds.NumpySlicesDataset((images, labels), ["x", "y"], shuffle=False).batch(8)


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def check_timeline(path):
    """Parses a timeline strictly; gives its slices by track, and the names of tracks."""
    with open(path) as file:
        timeline = json.load(file, parse_constant=pytest.fail)  # no NaN, no infinity
    assert set(timeline) == {"traceEvents", "displayTimeUnit"}
    slices, tracks, counters = {}, {}, []
    for event in timeline["traceEvents"]:
        assert event["pid"] == 1
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                tracks[event["tid"]] = event["args"]["name"]
            continue
        assert isinstance(event["name"], str)
        assert event["name"]
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert event["args"]["used"] >= 0
            assert event["args"]["reserved"] >= event["args"]["used"]
            counters.append(event)
            continue
        assert event["ph"] == "X"
        assert event["dur"] >= 0
        slices.setdefault(event["tid"], []).append(event)
    for tid, events in slices.items():
        assert tid in tracks
        open_until, last = [], 0
        for event in events:
            begin = nanoseconds(event["ts"])
            end = begin + nanoseconds(event["dur"])
            assert begin >= last, "events of a track are in order"
            last = begin
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], "slices nest"
            open_until.append(end)
    times = [nanoseconds(event["ts"]) for event in counters]
    assert times == sorted(times)
    return slices, tracks, counters


def test_a_training_run_is_written_whole(tmp_path):
    model, data = training()
    profiler = Profiler(
        output_path=str(tmp_path), profile_memory=True, profiler_level=ProfilerLevel.Level1,
        activities=[ProfilerActivity.CPU], data_simplification=False,
    )  # fmt: skip
    model.train(1, data)
    assert profiler.analyse() is None
    slices, tracks, counters = check_timeline(tmp_path / "timeline.json")
    names = {event["name"] for events in slices.values() for event in events}
    assert {"window", "graph lookup", "graph compilation", "wait for data", "forward",
            "backward", "update"} <= names  # fmt: skip
    assert any("program (thread" in name for name in tracks.values())
    assert any("data loader" in name for name in tracks.values())
    assert counters
    kernels = [e for events in slices.values() for e in events if e["cat"] == "kernel"]
    layers = {layer for kernel in kernels for layer in kernel["args"]["layers"]}
    assert any(layer.endswith("conv1") for layer in layers)
    for kernel in kernels:
        assert sum(part["share"] for part in kernel["args"]["operations"]) == pytest.approx(1)
    # The tables.
    layer_rows = {row["layer"]: row for row in rows_of(tmp_path / "layers.csv")}
    for conv in ("conv1", "conv2"):
        row = next(row for name, row in layer_rows.items() if name.endswith(conv))
        assert float(row["forward_ms"]) > 0
        assert float(row["backward_ms"]) > 0
        assert float(row["gflop_per_s"]) > 0
    shares = [float(row["share_percent"]) for row in rows_of(tmp_path / "operators.csv")]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert shares == sorted(shares, reverse=True)
    assert "split among them" in (tmp_path / "operators.txt").read_text()
    assert any("test_profiler.py" in row["line"] for row in rows_of(tmp_path / "lines.csv"))
    assert "Most time goes to" in (tmp_path / "summary.txt").read_text()
    # Memory: the curve's top is the peak whose holders are named.
    used = [int(row["used_bytes"]) for row in rows_of(tmp_path / "memory.csv")]
    peak = rows_of(tmp_path / "memory_peak.csv")
    assert max(used) == sum(int(row["bytes"]) for row in peak if row["where"] == "pool")
    assert any("fc1.weight" in row["holder"] for row in peak)
    assert any(row["where"] == "temporaries" for row in peak)


def test_the_costliest_operators_are_named(tmp_path):
    """Three operators with orders of magnitude more work than the rest, in fused surroundings."""
    large = Tensor(RNG.normal(size=(640, 640)).astype(np.float32))
    row = Tensor(RNG.normal(size=(300000,)).astype(np.float32))
    wide = Tensor(RNG.normal(size=(4000, 500)).astype(np.float32))

    def program():
        product = ops.relu(ops.matmul(large, large) * 2 + 1)
        ordered, _ = ops.sort(row)
        return product.sum() + ordered[0] + (ops.tanh(wide) * 0.5).sum()

    program().asnumpy()  # compiled
    least = {}
    for _ in range(5):
        with Profiler(start_profile=False, output_path=str(tmp_path)) as profiler:
            program().asnumpy()
        # The table on disk is that of this run, costliest first.
        rows = rows_of(tmp_path / "operators.csv")
        assert [row["name"] for row in profiler.cost_table()] == [row["operator"] for row in rows]
        own = [float(row["self_ms"]) for row in rows]
        assert own == sorted(own, reverse=True)
        # Another process may hold up any kernel, but hardly the same small one five times.
        for name, time in zip((entry["operator"] for entry in rows), own, strict=True):
            least[name] = min(time, least.get(name, time))
    costliest = sorted(least, key=least.get, reverse=True)[:3]
    assert set(costliest) == {"matmul", "sort", "tanh"}
    assert json.loads(profiler.op_analyse("matmul"))[0]["count"] == 1


def test_start_and_stop_in_a_callback(tmp_path):
    class Watch(ms.Callback):
        def __init__(self, first, last):
            super().__init__()
            self.first, self.last = first, last
            self.profiler = Profiler(start_profile=False, output_path=str(tmp_path))

        def on_train_step_begin(self, run_context):
            if run_context.original_args().cur_step_num == self.first:
                self.profiler.start()

        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == self.last:
                self.profiler.stop()

        def on_train_end(self, run_context):
            self.profiler.analyse()

    model, data = training(batches=5)
    watch = Watch(2, 3)
    model.train(1, data, callbacks=[watch])
    check_timeline(tmp_path / "timeline.json")
    pool = next(r for r in watch.profiler.cost_table("operator") if r["name"] == "max_pool")
    assert pool["count"] == 4  # two layers, two steps


def test_a_schedule_records_its_steps(tmp_path):
    seen = []

    def ready(profiler):
        seen.append(sum(r["count"] for r in profiler.cost_table() if r["name"] == "tanh"))
        tensorboard_trace_handler(str(tmp_path))(profiler)

    x = Tensor(np.ones((8, 8), np.float32))
    steps = schedule(wait=1, warmup=0, active=2, repeat=1, skip_first=1)
    with profile(schedule=steps, on_trace_ready=ready, profile_memory=True) as profiler:
        for _ in range(8):
            ops.tanh(x).asnumpy()
            profiler.step()
    assert seen == [2]
    slices, tracks, _ = check_timeline(tmp_path / "timeline.json")
    track = next(tid for tid, name in tracks.items() if name == "steps")
    assert [event["name"] for event in slices[track]] == ["step 2", "step 3"]


def tanh_counts():
    """A handler of traces, and how many tanh it has received each time."""
    counts = []

    def handler(profiler):
        counts.append(sum(r["count"] for r in profiler.cost_table() if r["name"] == "tanh"))

    return handler, counts


def test_traces_are_received_whichever_way_they_are_recorded():
    x = Tensor(np.ones((8, 8), np.float32))
    handler, counts = tanh_counts()
    profiler = profile(on_trace_ready=handler, start_profile=False)
    for _ in range(2):
        profiler.start()
        ops.tanh(x).asnumpy()
        profiler.stop()
    assert counts == [1, 1]
    for kind in (Profiler, profile):
        handler, counts = tanh_counts()
        with kind(on_trace_ready=handler):
            ops.tanh(x).asnumpy()
        assert counts == [1]
        handler, counts = tanh_counts()
        with kind(on_trace_ready=handler, schedule=schedule(wait=0, active=3)) as profiler:
            for _ in range(4):
                ops.tanh(x).asnumpy()
                profiler.step()
        assert counts == [3, 1]


def test_one_profiler_records_at_a_time(tmp_path):
    first = Profiler(output_path=str(tmp_path))
    with pytest.raises(ValueError, match="another profiler"):
        Profiler(output_path=str(tmp_path))
    del first
    gc.collect()
    second = Profiler(output_path=str(tmp_path))
    second.add_metadata("run", "seventh")
    second.analyse()
    assert json.loads((tmp_path / "profiler_metadata.json").read_text()) == {"run": "seventh"}


def test_what_is_not_provided_says_so(tmp_path):
    profiler = Profiler(start_profile=False, output_path=str(tmp_path))
    with pytest.raises(NotImplementedError, match="step_list"):
        profiler.analyse(step_list=[1])
    with pytest.raises(ValueError, match="mode"):
        profiler.analyse(mode="later")
    with pytest.raises(ValueError, match="active must be at least 1"):
        schedule(wait=0, active=0)
    with pytest.raises(ValueError, match="wait must not be negative"):
        schedule(wait=-1, active=1)
    with pytest.raises(ValueError, match="by must be 'operator', 'layer' or 'line', got 'layers'"):
        profiler.cost_table("layers")
    with pytest.raises(TypeError, match="profile_memmory"):
        Profiler(start_profile=False, profile_memmory=True)
    blocked = tmp_path / "file"
    blocked.write_text("")
    inside = Profiler(output_path=str(blocked / "x"))
    with pytest.raises(OSError, match="cannot be made"):
        inside.analyse()


def test_what_was_not_started_is_neither_stopped_nor_started_twice(tmp_path):
    profiler = ms.Profiler(start_profile=False, output_path=str(tmp_path))
    for call in ("stop", "analyse"):
        with pytest.raises(RuntimeError, match=rf"\[Profiler\.{call}\] it was not started"):
            getattr(profiler, call)()
    profiler.start()
    with pytest.raises(RuntimeError, match=r"\[Profiler\.start\] it was started already"):
        profiler.start()
    profiler.stop()
    profiler.stop()
    profiler.start()
    profiler.analyse()
