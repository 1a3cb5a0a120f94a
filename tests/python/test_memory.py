"""Memory statistics, limits, and what is said when memory runs out."""

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Model, Tensor, nn, ops, runtime, train

MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def long_window():
    """Windows as long as a program's, whatever LAMELLA_WINDOW says."""
    before = lamella._native.window()
    lamella.set_window(0)
    yield
    lamella.set_window(before)


@pytest.fixture
def limited():
    """Sets a limit some bytes above what is reserved, and takes it back."""

    def limit(room):
        runtime.empty_cache()
        runtime.set_memory(max_size=f"{(runtime.memory_reserved() + room) / (1 << 30):.9f}GB")

    yield limit
    runtime.set_memory()


def test_figures_follow_what_exists():
    before = runtime.memory_allocated()
    runtime.reset_peak_memory_stats()
    kept = Tensor(np.ones((512, 512), np.float32)) * 2
    assert runtime.memory_allocated() - before >= MEBIBYTE
    (kept * 3).asnumpy()
    peak = runtime.max_memory_allocated()
    assert peak - before >= 2 * MEBIBYTE
    del kept
    assert runtime.memory_allocated() <= before + 4096
    assert runtime.max_memory_allocated() == peak
    runtime.reset_max_memory_allocated()
    assert runtime.max_memory_allocated() < peak
    assert runtime.max_memory_reserved() >= runtime.memory_reserved() >= runtime.memory_allocated()


def test_stats_have_their_names():
    stats = runtime.memory_stats()
    assert stats["total_reserved_memory"] == runtime.memory_reserved()
    assert stats["total_allocated_memory"] == runtime.memory_allocated()
    assert 0 <= stats["fragmentation"] <= 1
    assert ms.memory_stats is runtime.memory_stats
    held = ops.exp(Tensor(np.ones((256, 256), np.float32)))
    held.asnumpy()
    summary = runtime.memory_summary()
    assert "held by:" in summary
    assert "exp f32[256,256]" in summary


def test_empty_cache_gives_memory_back():
    many = [Tensor(np.ones((256, 1024), np.float32)) + i for i in range(8)]
    for tensor in many:
        tensor.asnumpy()
    del many, tensor
    reserved = runtime.memory_reserved()
    runtime.empty_cache()
    assert runtime.memory_reserved() <= reserved - 8 * MEBIBYTE


def test_out_of_memory_names_the_holders_and_the_process_goes_on(limited):
    net = nn.Dense(1024, 1024)
    held = net(Tensor(np.ones((1024, 1024), np.float32)))
    held.asnumpy()
    limited(2 * MEBIBYTE)
    with pytest.raises(MemoryError) as caught:
        ops.exp(ops.broadcast_to(held, (4, 1024, 1024))).asnumpy()
    message = str(caught.value)
    assert "16.0 MiB (16777216 bytes) asked for exp f32[4,1024,1024]" in message
    assert "dense f32[1024,1024]" in message
    assert "weight f32[1024,1024]" in message
    assert "test_memory.py" in message
    assert float((held[0] * 0).sum()) == 0
    runtime.set_memory()
    assert ops.tile(held, (4, 1)).asnumpy().shape == (4096, 1024)


def test_limits_are_sizes():
    for wrong in ("2", "GB", 3, "-1GB", "0GB", "2MB"):
        with pytest.raises(ValueError, match="max_size"):
            runtime.set_memory(max_size=wrong)
    with pytest.raises(ValueError, match="optimize_level"):
        runtime.set_memory(optimize_level="O7")
    with pytest.raises(ValueError, match="max_device_memory"):
        ms.set_context(max_device_memory="much")
    ms.set_context(max_device_memory="512GB")
    assert ms.get_context("max_device_memory") == "512GB"


def test_monitor_prints_every_interval(capfd):
    x = np.ones((16, 4), np.float32)
    y = np.ones((16, 1), np.float32)
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(4)
    net = nn.Dense(4, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(2, data, callbacks=train.MemoryMonitor(3))
    lines = [line for line in capfd.readouterr().out.splitlines() if "memory used" in line]
    assert [line.split(",")[0] for line in lines] == ["epoch: 1 step: 3", "epoch: 2 step: 2"]
    assert all(" MiB, peak: " in line for line in lines)
    with pytest.raises(ValueError, match="interval"):
        train.MemoryMonitor(0)
