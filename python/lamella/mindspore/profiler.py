"""mindspore.profiler."""

from lamella.names import missing
from lamella.profiler import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    Profiler,
    ProfilerActivity,
    ProfilerLevel,
    _ExperimentalConfig,
    profile,
    schedule,
    tensorboard_trace_handler,
)

__getattr__ = missing(__name__, lambda: globals())
