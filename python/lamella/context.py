"""Settings of a program: the mode, the device, options that are accepted for compatibility."""

from lamella import _native

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


def set_context(**kwargs):
    """Sets options by keyword; a name that is none of them is a ValueError."""
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ValueError(
                f"[set_context] {name!r} is not one of: {', '.join(sorted(_DEFAULTS))}"
            )
        if name == "mode" and value not in (GRAPH_MODE, PYNATIVE_MODE):
            raise ValueError(
                f"[set_context] mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), got {value!r}"
            )
        if name == "device_target" and value not in _DEVICES:
            raise ValueError(
                f"[set_context] device_target must be one of {_DEVICES}, got {value!r}"
            )
        if name == "mode":
            from lamella.nn.cell import set_graph_mode

            set_graph_mode(value == GRAPH_MODE)
        if name == "pynative_synchronize":
            _native.set_window(1 if value else 0)
        if name == "max_device_memory":
            from lamella.runtime import set_memory

            set_memory(max_size=value)
        _settings[name] = value


def get_context(attr_key):
    """The value of an option."""
    if attr_key not in _settings:
        raise ValueError(
            f"[get_context] {attr_key!r} is not one of: {', '.join(sorted(_settings))}"
        )
    return _settings[attr_key]


def set_device(device_target, device_id=None):
    """Chooses the device: this build has the CPU."""
    set_context(device_target=device_target, device_id=device_id or 0)


def set_auto_parallel_context(**kwargs):
    """Sets options of parallel training by keyword."""
    for name, value in kwargs.items():
        if name not in _PARALLEL_DEFAULTS:
            raise ValueError(
                f"[set_auto_parallel_context] {name!r} is not one of: "
                f"{', '.join(sorted(_PARALLEL_DEFAULTS))}"
            )
        _parallel[name] = value


def get_auto_parallel_context(attr_key):
    """The value of an option of parallel training."""
    if attr_key not in _parallel:
        raise ValueError(f"[get_auto_parallel_context] {attr_key!r} is not an option")
    return _parallel[attr_key]


def reset_auto_parallel_context():
    """Puts the options of parallel training back to their defaults."""
    _parallel.update(_PARALLEL_DEFAULTS)
