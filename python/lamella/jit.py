"""jit: the function itself, run as the window runs it; results are those of dynamic mode."""

import functools


def jit(
    function=None,
    *,
    capture_mode="ast",
    jit_level="O0",
    dynamic=0,
    fullgraph=False,
    backend="",
    **options,
):
    """Decorates a function or a method, or takes a Cell; with or without arguments."""
    if function is None:
        return functools.partial(jit, capture_mode=capture_mode, jit_level=jit_level)
    if not callable(function):
        raise TypeError(f"[jit] a function is expected, got {type(function).__name__}")
    if not hasattr(function, "__code__"):
        return function

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        return function(*args, **kwargs)

    return compiled


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """A function of constants, computed in Python."""
    return constexpr if fn is None else fn


class JitConfig:
    """Options of jit; kept, without effect on results."""

    def __init__(
        self,
        jit_level="",
        exc_mode="auto",
        jit_syntax_level="",
        debug_level="RELEASE",
        infer_boost="off",
        **kwargs,
    ):
        self.jit_config_dict = dict(
            jit_level=jit_level,
            exc_mode=exc_mode,
            jit_syntax_level=jit_syntax_level,
            debug_level=debug_level,
            infer_boost=infer_boost,
            **kwargs,
        )
