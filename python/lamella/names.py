"""Names that a module does not have: a clear error instead of a bare one."""

import difflib


def missing(module, names=None):
    """A module-level __getattr__ that says which name is missing, and what is close to it."""

    def __getattr__(name):  # noqa: N807
        public = module.replace("lamella.mindspore", "mindspore")
        if name.startswith("__"):
            raise AttributeError(f"module {public!r} has no attribute {name!r}")
        close = difflib.get_close_matches(name, list(names() if names else ()), 3)
        hint = f"; close to it: {', '.join(close)}" if close else ""
        raise AttributeError(f"{public}.{name} is not provided by Lamella{hint}")

    return __getattr__
