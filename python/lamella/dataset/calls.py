"""How a user's function is called inside a pipeline: with random numbers of its own.

Draws from NumPy's and Python's global generators inside the function come from a key of the row, so
that a run repeats under its seed and no number of workers changes a sample. Outside the function
both generators stand as if it had not been called.
"""

import random

import numpy as np

from lamella import _native

_MASK = (1 << 64) - 1


def call(function, key, arguments):
    """function(*arguments) under the key's random numbers."""
    python_state = random.getstate()
    random.seed(key)
    numpy_generator = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.Philox(key=key & _MASK))
    try:
        return function(*arguments)
    finally:
        np.random.set_bit_generator(numpy_generator)
        random.setstate(python_state)


def call_old(function, key, arguments):
    """The same for NumPy before 1.24."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    random.seed(key)
    np.random.seed(key & 0xFFFFFFFF)
    try:
        return function(*arguments)
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)


_native.data.set_call_shim(call if hasattr(np.random, "set_bit_generator") else call_old)
