"""The profiler with MindSpore's arguments: where a program's time and memory went.

Options that steer what other devices record are accepted and change nothing here: operators, layers
and source lines are always recorded.
"""

import enum
import json
import os
from collections.abc import Callable

from lamella import _native
from lamella._arguments import require


class ProfilerLevel(enum.Enum):
    """How much is recorded; here always everything."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(enum.Enum):
    """Which devices are recorded; here the CPU."""

    NPU = "NPU"
    GPU = "GPU"
    CPU = "CPU"


class AicoreMetrics(enum.Enum):
    """Counters of the Ascend AI core; not recorded here."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "None"


class ExportType(enum.Enum):
    """The form of the results; here always text."""

    Db = "db"
    Text = "text"


class HostSystem(enum.Enum):
    """Figures of the host system; not recorded here."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


class schedule(_native.profile.Schedule):  # noqa: N801 (MindSpore's name)
    """Which steps are recorded: after skip_first steps, cycles of wait, warmup and active ones."""

    def __init__(self, *, wait, active, warmup=0, repeat=0, skip_first=0):
        super().__init__(wait, warmup, active, repeat, skip_first)


def tensorboard_trace_handler(dir_name=None, worker_name=None, analyse_flag=True, async_mode=False):
    """What on_trace_ready may do with what was recorded: write the results into dir_name."""

    name = "tensorboard_trace_handler"
    require(name, "dir_name", dir_name, (str, os.PathLike, type(None)), "a path or None")
    require(name, "worker_name", worker_name, (str, type(None)), "a str or None")
    require(name, "analyse_flag", analyse_flag, bool, "a bool")
    require(name, "async_mode", async_mode, bool, "a bool")

    def handler(profiler):
        if analyse_flag:
            profiler._write(dir_name)

    return handler


class _ExperimentalConfig:
    """Options for other devices: accepted."""

    def __init__(self, profiler_level=ProfilerLevel.Level0, aic_metrics=AicoreMetrics.AiCoreNone,
                 l2_cache=False, mstx=False, data_simplification=True, export_type=None,
                 mstx_domain_include=None, mstx_domain_exclude=None, sys_io=False,
                 sys_interconnection=False, host_sys=None):  # fmt: skip
        self.profiler_level = profiler_level


_FLAG = (bool, type(None)), "a bool or None"
# Options that are about other devices: accepted, with the classes they may be of.
_OTHER_DEVICES = {
    "profiler_level": ((ProfilerLevel, type(None)), "a ProfilerLevel or None"),
    "activities": ((list, tuple, type(None)), "a list of ProfilerActivity or None"),
    "aic_metrics": ((AicoreMetrics, type(None)), "an AicoreMetrics or None"),
    "experimental_config": ((_ExperimentalConfig, type(None)), "an _ExperimentalConfig or None"),
} | dict.fromkeys(
    ("with_stack", "data_simplification", "l2_cache", "hbm_ddr", "pcie", "data_process",
     "parallel_strategy", "sync_enable", "record_shapes"),
    _FLAG,
)  # fmt: skip


def _check_other_devices(name, options):
    for option, value in options.items():
        require(name, option, value, *_OTHER_DEVICES[option])
    for activity in options.get("activities") or ():
        require(name, "activities", activity, ProfilerActivity, "a list of ProfilerActivity")


class Profiler(_native.profile.Profiler):
    """Records from its start to its stop; `analyse` writes the results into output_path.

    The folder then holds timeline.json (for ui.perfetto.dev and chrome://tracing), tables of time
    by operator, layer and source line, a summary, and with profile_memory memory over time. With
    on_trace_ready, that function is called with the profiler after each cycle of the schedule, and
    at the stop with what it has not received; what it has received is then forgotten.
    """

    def __init__(self, *, start_profile=True, output_path="./data", schedule=None,
                 on_trace_ready=None, profile_memory=False, **options):  # fmt: skip
        name = type(self).__name__
        if unknown := set(options) - set(_OTHER_DEVICES):
            raise TypeError(f"[{name}] unknown arguments: {', '.join(sorted(unknown))}")
        _check_other_devices(name, options)
        require(name, "start_profile", start_profile, bool, "a bool")
        require(name, "output_path", output_path, (str, os.PathLike), "a path")
        require(name, "profile_memory", profile_memory, bool, "a bool")
        require(
            name, "on_trace_ready", on_trace_ready, (Callable, type(None)), "a function or None"
        )
        super().__init__(
            os.path.abspath(output_path), profile_memory, schedule,
            on_trace_ready is not None,
        )  # fmt: skip
        self._on_trace_ready = on_trace_ready
        self._metadata = {}
        self._was_started = False
        if start_profile:
            self.start()

    def __enter__(self):
        if not self._started:
            self.start()
        return self

    def start(self):
        """Begins to record, as the schedule says. RuntimeError if it was started already."""
        if self._started:
            raise RuntimeError(f"[{type(self).__name__}.start] it was started already")
        self._was_started = True
        super().start()

    def stop(self):
        """Records no more. RuntimeError if it was never started."""
        self._check_was_started("stop")
        super().stop()

    def _check_was_started(self, call):
        if not self._was_started:
            raise RuntimeError(f"[{type(self).__name__}.{call}] it was not started")

    def __exit__(self, *error):
        self.stop()
        if error[0] is None and self._on_trace_ready is None:
            self.analyse()

    def analyse(self, offline_path=None, pretty=False, step_list=None, mode="sync"):
        """Stops, and writes what was recorded."""
        if offline_path is not None or step_list is not None:
            raise NotImplementedError(
                "[Profiler.analyse] offline_path and step_list are not provided by Lamella: what "
                "this profiler recorded is written; a schedule chooses steps"
            )
        if mode not in ("sync", "async"):
            raise ValueError(f"[Profiler.analyse] mode must be 'sync' or 'async', got {mode!r}")
        self._check_was_started("analyse")
        self._write(None)

    def op_analyse(self, op_name, device_id=None):
        """The figures of an operator, or of a list of them, as JSON text; times in seconds."""
        names = [op_name] if isinstance(op_name, str) else list(op_name)
        self.stop()
        return json.dumps([row for row in self.cost_table("operator") if row["name"] in names])

    def add_metadata(self, key, value):
        """Keeps a text beside the results, in profiler_metadata.json."""
        self._metadata[str(key)] = str(value)

    def add_metadata_json(self, key, value):
        """Keeps JSON text beside the results, in profiler_metadata.json."""
        self._metadata[str(key)] = json.loads(value)

    def _write(self, path):
        folder = self._output_path if path is None else os.path.abspath(os.fspath(path))
        self._analyse(folder)
        if self._metadata:
            with open(os.path.join(folder, "profiler_metadata.json"), "w") as file:
                json.dump(self._metadata, file, indent=1)

    def _trace_ready(self):
        self._on_trace_ready(self)


class profile(Profiler):  # noqa: N801 (MindSpore's name)
    """A profiler for a `with` statement."""

    def __init__(self, activities=None, with_stack=False, profile_memory=False, data_process=False,
                 parallel_strategy=False, start_profile=True, hbm_ddr=False, pcie=False,
                 sync_enable=True, record_shapes=False, schedule=None, on_trace_ready=None,
                 experimental_config=None):  # fmt: skip
        super().__init__(
            start_profile=start_profile, schedule=schedule, on_trace_ready=on_trace_ready,
            profile_memory=profile_memory, activities=activities, with_stack=with_stack,
            data_process=data_process, parallel_strategy=parallel_strategy, hbm_ddr=hbm_ddr,
            pcie=pcie, sync_enable=sync_enable, record_shapes=record_shapes,
            experimental_config=experimental_config,
        )  # fmt: skip
