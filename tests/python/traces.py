"""For tests of jit: whether a call runs Python, and whether it gives what dynamic mode gives."""

import sys

import lamella.alias  # noqa: F401
import mindspore as ms
from mindspore import Tensor


def entered(function, call):
    """Whether `call` runs the Python of `function`, and what it gives."""
    code, seen = function.__code__, []

    def profile(frame, event, arg):
        if event == "call" and frame.f_code is code:
            seen.append(1)

    sys.setprofile(profile)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return bool(seen), result


def values(result):
    """A result with lists of numbers in the place of tensors."""
    if isinstance(result, Tensor):
        return result.asnumpy().tolist()
    if isinstance(result, (tuple, list)):
        return [values(item) for item in result]
    if isinstance(result, dict):
        return {key: values(item) for key, item in result.items()}
    return result


def same(compiled, function, *args, **kwargs):
    """Asserts that both give the same, several times over."""
    for _ in range(4):
        assert values(compiled(*args, **kwargs)) == values(function(*args, **kwargs))


def settled(function, *args, **kwargs):
    """The decorated function, once its trace is kept."""
    compiled = ms.jit(function)
    same(compiled, function, *args, **kwargs)
    ran, _ = entered(function, lambda: compiled(*args, **kwargs))
    assert not ran, "no trace was kept"
    return compiled
