"""The seed of the process's generator."""

from lamella import _native
from lamella._arguments import int_of

_state = {"seed": None}


def set_seed(seed):
    """Starts the generator anew; NumPy's global generator and the seed of datasets too, as programs
    expect. Of this seed and dataset.config.set_seed, datasets follow the last one set."""
    import numpy

    seed = int_of("set_seed", "seed", seed)
    if not 0 <= seed < 2**64:
        raise ValueError(f"[set_seed] seed must be at least 0 and below 2**64, got {seed}")
    _state["seed"] = seed
    _native.set_seed(seed)
    _native.data.config.set_seed(seed % 2**32)
    numpy.random.seed(seed % 2**32)


def get_seed():
    """The seed that was set; None if none was."""
    return _state["seed"]
