"""mindspore.profiler."""

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
