"""Programs as a whole: running, copying, threads, leaving."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from lamella import Tensor


def run(code, *arguments, **options):
    command = [sys.executable, *arguments] if arguments else [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_lamella_run_makes_mindspore_an_alias(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport mindspore as ms\nfrom mindspore.common import dtype as mstype\n"
        "print(ms.__version__, (ms.Tensor([1.0], mstype.float32) + 1).asnumpy(), sys.argv[1:])\n"
    )
    done = run("", "-m", "lamella", "run", str(script), "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2.10.0 [2.] ['--epochs', '3']"


def test_nothing_is_said_on_leaving():
    code = (
        "import lamella.alias, mindspore as ms, numpy as np\n"
        "x = ms.Tensor(np.ones(3, np.float32)); y = x + 1; kept = y.asnumpy(); z = y * 2\n"
        "g = ms.grad(lambda x: (x * x).sum())(x)\n"
    )
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_is_light():
    """Nothing is computed or compiled, and what few programs need is not loaded."""
    code = (
        "import sys, lamella.alias, mindspore, lamella\n"
        "print([name for name in ('ml_dtypes', 'multiprocessing') if name in sys.modules])\n"
        "print(set(lamella.counters().values()))\n"
    )
    done = run(code)
    assert (done.returncode, done.stdout) == (0, "[]\n{0}\n"), done.stdout + done.stderr


def test_copies_and_pickles_hold_the_value_and_nothing_else():
    x = Tensor(np.arange(3, dtype=np.float16))
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin.dtype == x.dtype
        twin += 1
        assert np.array_equal(x.asnumpy(), [0, 1, 2])
        assert np.array_equal(twin.asnumpy(), [1, 2, 3])
    assert copy.deepcopy({"a": [x]})["a"][0].shape == (3,)


def test_other_threads_go_on_during_a_run():
    x = Tensor(np.random.default_rng(0).normal(size=(1500, 1500)).astype(np.float32))
    (x @ x).asnumpy()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    y = x
    for _ in range(8):
        y = y @ x * 1e-3
    y.asnumpy()
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert sum(begin < at < end for at in ticks) >= 3


def test_threads_share_tensors():
    x = Tensor(np.arange(1000, dtype=np.float32)) * 2
    results = [None] * 4

    def work(number):
        y = x
        for _ in range(50):
            y = y + number
        results[number] = y.asnumpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in enumerate(results):
        assert np.array_equal(result, np.arange(1000) * 2 + 50 * number)


@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal")
def test_ctrl_c_stops_a_long_run():
    code = (
        "import signal, numpy as np, lamella\n"
        # A shell's background jobs, so perhaps this test, begin with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "x = lamella.Tensor(np.ones((1000, 1000), np.float32))\n"
        "y = x\n"
        "for _ in range(400): y = y @ x * 1e-3\n"
        "print('begin', flush=True)\n"
        "y.asnumpy()\n"
        "print('end', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LAMELLA_WINDOW": "0"},  # nothing runs before it is read
    )
    assert process.stdout.readline().strip() == "begin"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert "end" not in out
