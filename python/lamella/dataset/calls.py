"""How a user's function is called inside a pipeline: with random numbers of its own.

Draws from NumPy's and Python's global generators inside the function come from a key of the row, so
that a run repeats under its seed and no number of workers, threads or processes changes a sample.
Everywhere else both generators go on as if the function had not been called, also in threads that
draw while it runs; but for such threads, `random` and `getrandbits` must be called through Python's
module, not through names that were imported from it before.
"""

import os
import random
import threading

import numpy as np

from lamella._native import data as _data


class _Row(threading.local):
    """What this thread makes a row for; None outside of users' functions."""

    drawing = None


class _Draws:
    """The random numbers of one row."""

    def __init__(self, key):
        self.key = key
        self.ended = False
        self.numpy_state = None  # where NumPy's generator stands; None before the first draw

    def seed_numpy(self):
        # The last word keeps the numbers apart from those of Python's generator, which makes the
        # same use of the others.
        np.random.seed([self.key & 0xFFFFFFFF, self.key >> 32, 1])


_row = _Row()


class _NumpyLock:
    """The lock that NumPy takes around every draw from its global generator. Whoever takes it finds
    the generator in a state of its own: that of the row it makes, or that of all other code."""

    def __init__(self):
        self.renew()
        self._owner = None  # whose state the generator has
        self._outside = None  # the state of all other code
        self._outside_moved = True  # since it was saved

    def renew(self):
        """In a child of fork, where the lock's holder may not exist."""
        self._lock = threading.RLock()
        self._switching = False

    def __enter__(self):
        self._lock.acquire()
        if _row.drawing is not self._owner and not self._switching:
            try:
                self._switch(_row.drawing)
            except BaseException:
                self._lock.release()
                raise
        if self._owner is None:
            self._outside_moved = True

    def __exit__(self, *failure):
        self._lock.release()

    def acquire(self, *arguments):
        return self._lock.acquire(*arguments)

    def release(self):
        self._lock.release()

    def _switch(self, wanted):
        self._switching = True
        try:
            # Saving takes longer than most draws, so what nobody needs is not saved.
            if self._owner is None:
                if self._outside_moved:
                    self._outside = np.random.get_state(legacy=False)
                    self._outside_moved = False
            elif not self._owner.ended:
                self._owner.numpy_state = np.random.get_state(legacy=False)
            self._owner = wanted
            if wanted is None:
                np.random.set_state(self._outside)
            elif wanted.numpy_state is None:
                wanted.seed_numpy()
            else:
                np.random.set_state(wanted.numpy_state)
        finally:
            self._switching = False


_numpy_lock = _NumpyLock()


class MT19937(np.random.MT19937):
    """NumPy's global generator with that lock. NumPy compares the name of the class with the one in
    a saved state."""

    @property
    def lock(self):
        return _numpy_lock

    @property
    def state(self):
        with _numpy_lock:
            return np.random.MT19937.state.__get__(self)

    @state.setter
    def state(self, value):
        with _numpy_lock:
            np.random.MT19937.state.__set__(self, value)


def _watch_numpy():
    """Gives NumPy's global generator the lock, where it still is the one that NumPy begins with."""
    current = getattr(np.random, "get_bit_generator", lambda: None)()
    if type(current) is not np.random.MT19937:
        return
    state = np.random.get_state(legacy=False)
    np.random.set_bit_generator(MT19937())
    np.random.set_state(state)


class _NumpySwapped:
    """Draws from a global generator that has no such lock: one that the user has set, or an older
    NumPy's. Other threads that draw meanwhile draw from the row's numbers."""

    def __init__(self, draws):
        self._replaced = hasattr(np.random, "set_bit_generator")
        if self._replaced:
            self._outside = np.random.get_bit_generator()
            np.random.set_bit_generator(np.random.MT19937())
        else:
            self._outside = np.random.get_state()
        draws.seed_numpy()

    def end(self):
        if self._replaced:
            np.random.set_bit_generator(self._outside)
        else:
            np.random.set_state(self._outside)


_python = random._inst
_outside = random.Random(0)  # stands for it in other threads while a row is made
_State = random.Random.__base__  # the part in C, below what _PythonLocked replaces


class _PythonLocked(random.Random):
    """The class of Python's global generator while a row is made."""

    lock = threading.RLock()

    def _generator(self):
        return _outside if _row.drawing is None else self

    def random(self):
        with self.lock:
            return random.Random.random(self._generator())

    def getrandbits(self, k):
        with self.lock:
            return random.Random.getrandbits(self._generator(), k)

    def seed(self, a=None, version=2):
        with self.lock:
            random.Random.seed(self._generator(), a, version)

    def getstate(self):
        with self.lock:
            return random.Random.getstate(self._generator())

    def setstate(self, state):
        with self.lock:
            random.Random.setstate(self._generator(), state)

    @property
    def gauss_next(self):
        return self._generator().__dict__.get("gauss_next")

    @gauss_next.setter
    def gauss_next(self, value):
        self._generator().__dict__["gauss_next"] = value


# What the module holds bound to the generator and does not look up in its class.
_BOUND = ("random", "getrandbits", "seed", "getstate", "setstate")


def _copy(source, target):
    _State.setstate(target, _State.getstate(source))
    target.__dict__["gauss_next"] = source.__dict__.get("gauss_next")


def _begin_python(draws):
    with _PythonLocked.lock:
        # From here on other threads draw through the lock, which is held.
        _python.__class__ = _PythonLocked
        for name in _BOUND:
            setattr(random, name, getattr(_python, name))
        _copy(_python, _outside)
        _State.seed(_python, draws.key)
        _python.__dict__["gauss_next"] = None


def _end_python():
    with _PythonLocked.lock:
        _copy(_outside, _python)
        _python.__class__ = random.Random
        for name in _BOUND:
            setattr(random, name, getattr(_python, name))


_one_at_a_time = threading.RLock()


def inside():
    """Whether this thread runs a user's function of a pipeline."""
    return _row.drawing is not None


def call(function, key, *arguments):
    """function(*arguments) under the key's random numbers."""
    with _one_at_a_time:
        outer = _row.drawing
        if outer is not None:  # a function that calls another one: its numbers go on
            return function(*arguments)
        draws = _Draws(key)
        watched = isinstance(getattr(np.random, "get_bit_generator", lambda: None)(), MT19937)
        swapped = None if watched else _NumpySwapped(draws)
        _begin_python(draws)
        _row.drawing = draws
        _data.set_row_key(key)
        try:
            return function(*arguments)
        finally:
            _data.set_row_key(None)
            _row.drawing = None
            _end_python()
            draws.ended = True
            if swapped is not None:
                swapped.end()


def _after_fork():
    global _one_at_a_time
    _one_at_a_time = threading.RLock()
    _PythonLocked.lock = threading.RLock()
    _numpy_lock.renew()


_watch_numpy()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
