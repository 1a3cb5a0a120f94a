"""What can go wrong while a checkpoint is written leaves the one before as it was."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

WRITER = """
import itertools, sys
import numpy as np
import lamella.alias
import mindspore as ms
from mindspore import Tensor

for number in itertools.count(1):
    tensor = Tensor(np.full(200_000, number, np.float32))
    ms.save_checkpoint([{"name": "w", "data": tensor}], sys.argv[1])
    if number == 1:
        print("begin", flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "net.ckpt"
    rng = random.Random(3)
    for _ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout.readline() == "begin\n"
        time.sleep(rng.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        values = np.unique(ms.load_checkpoint(str(path))["w"].asnumpy())
        assert len(values) == 1, "the file holds two checkpoints' parts"
    # What killed writers left goes with the next one.
    ms.save_checkpoint([{"name": "w", "data": Tensor([1.0])}], str(path))
    assert os.listdir(tmp_path) == ["net.ckpt"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    program = """
import resource, signal, sys
import numpy as np
import lamella.alias
import mindspore as ms
from mindspore import Tensor

path = sys.argv[1]
ms.save_checkpoint([{"name": "w", "data": Tensor([1.0, 2.0])}], path)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    ms.save_checkpoint([{"name": "w", "data": Tensor(np.zeros(1_000_000, np.float32))}], path)
except OSError as error:
    print("refused:", error)
"""
    path = tmp_path / "net.ckpt"
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert "refused:" in run.stdout
    assert "net.ckpt" in run.stdout
    np.testing.assert_array_equal(ms.load_checkpoint(str(path))["w"].asnumpy(), [1, 2])
    assert os.listdir(tmp_path) == ["net.ckpt"]


@pytest.mark.parametrize("folder", ["/proc/self", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_named(folder):
    path = pathlib.Path(folder) / "net.ckpt"
    with pytest.raises(OSError, match="net.ckpt"):
        ms.save_checkpoint(nn.Dense(2, 2), str(path))
