"""Settings of a program: the mode, the device, options that are accepted for compatibility."""

from lamella import _native
from lamella.runtime import limit_memory

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "set_context",
    "set_device",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1


class ParallelMode:
    """How a training step is spread over processes."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_DEFAULTS = {
    "mode": PYNATIVE_MODE, "device_id": 0, "device_target": "CPU", "deterministic": "OFF",
    "max_call_depth": 1000, "variable_memory_max_size": "0GB", "mempool_block_size": "1GB",
    "memory_optimize_level": "O0", "max_device_memory": "1024GB", "pynative_synchronize": False,
    "compile_cache_path": ".", "inter_op_parallel_num": 0, "disable_format_transform": False,
    "jit_syntax_level": 2, "jit_config": None, "exec_order": "bfs", "op_timeout": 900,
    "aoe_tune_mode": "", "aoe_config": None, "runtime_num_threads": 30, "save_graphs": 0,
    "save_graphs_path": ".", "enable_compile_cache": False, "ascend_config": None,
    "gpu_config": None, "print_file_path": "", "env_config_path": "", "debug_level": 0,
    "reserve_class_name_in_scope": True, "check_bprop": False, "enable_reduce_precision": True,
    "support_binary": False, "enable_graph_kernel": False, "graph_kernel_flags": "",
    "grad_for_scalar": False, "save_dump_path": ".", "enable_ge": False,
}  # fmt: skip

_PARALLEL_DEFAULTS = {
    "device_num": 1, "global_rank": 0, "gradients_mean": False, "gradient_fp32_sync": True,
    "loss_repeated_mean": True, "parallel_mode": ParallelMode.STAND_ALONE,
    "search_mode": "recursive_programming", "auto_parallel_search_mode": "recursive_programming",
    "parameter_broadcast": False, "strategy_ckpt_load_file": "", "strategy_ckpt_save_file": "",
    "full_batch": False, "dataset_strategy": "data_parallel", "enable_parallel_optimizer": False,
    "force_fp32_communication": False, "enable_alltoall": False, "all_reduce_fusion_config": None,
    "pipeline_stages": 1, "pipeline_result_broadcast": False, "pipeline_config": None,
    "parallel_optimizer_config": None, "comm_fusion": None, "strategy_ckpt_config": None,
    "group_ckpt_save_file": "", "auto_pipeline": False, "dump_local_norm": False,
    "dump_local_norm_path": "", "dump_device_local_norm": False,
}  # fmt: skip

_settings = dict(_DEFAULTS)
_parallel = dict(_PARALLEL_DEFAULTS)
_DEVICES = ("CPU", "GPU", "Ascend", "Davinci")


def _check_known(call, given, known):
    for name in given:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"[{call}] {name!r} is not one of: {', '.join(sorted(known))}")


def set_context(**kwargs):
    """Sets options by keyword, all or, where one is refused with a ValueError, none."""
    _check_known("set_context", kwargs, _DEFAULTS)
    mode, device = kwargs.get("mode", PYNATIVE_MODE), kwargs.get("device_target", "CPU")
    if mode not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(
            f"[set_context] mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), got {mode!r}"
        )
    if device not in _DEVICES:
        raise ValueError(f"[set_context] device_target must be one of {_DEVICES}, got {device!r}")
    if "max_device_memory" in kwargs:  # the only one that may still be refused
        limit_memory("set_context", "max_device_memory", kwargs["max_device_memory"])
    if "mode" in kwargs:
        from lamella.nn.cell import set_graph_mode

        set_graph_mode(mode == GRAPH_MODE)
    if "pynative_synchronize" in kwargs:
        _native.set_window(1 if kwargs["pynative_synchronize"] else 0)
    _settings.update(kwargs)


def get_context(attr_key):
    """The value of an option."""
    _check_known("get_context", [attr_key], _settings)
    return _settings[attr_key]


def set_device(device_target, device_id=None):
    """Chooses the device: this build has the CPU."""
    set_context(device_target=device_target, device_id=device_id or 0)


def set_auto_parallel_context(**kwargs):
    """Sets options of parallel training by keyword."""
    _check_known("set_auto_parallel_context", kwargs, _PARALLEL_DEFAULTS)
    _parallel.update(kwargs)


def get_auto_parallel_context(attr_key):
    """The value of an option of parallel training."""
    _check_known("get_auto_parallel_context", [attr_key], _parallel)
    return _parallel[attr_key]


def reset_auto_parallel_context():
    """Puts the options of parallel training back to their defaults."""
    _parallel.update(_PARALLEL_DEFAULTS)
