"""The seed of the process's generator."""

from lamella import _native

_state = {"seed": None}


def set_seed(seed):
    """Starts the generator anew; NumPy's global generator too, as programs expect."""
    import numpy

    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"[set_seed] seed must be a whole number of at least 0, got {seed!r}")
    _state["seed"] = seed
    _native.set_seed(seed)
    numpy.random.seed(seed % 2**32)


def get_seed():
    """The seed that was set; None if none was."""
    return _state["seed"]
