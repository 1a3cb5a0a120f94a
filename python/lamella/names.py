"""Names that a module does not have: a clear error instead of a bare one."""

import difflib
import importlib
import pkgutil


def missing(module, names=None):
    """A module-level __getattr__ that says which name is missing, and what is close to it."""

    def __getattr__(name):  # noqa: N807
        public = module.replace("lamella.mindspore", "mindspore")
        if name.startswith("__"):
            raise AttributeError(f"module {public!r} has no attribute {name!r}")
        known = [each for each in (names() if names else ()) if not each.startswith("_")]
        close = difflib.get_close_matches(name, known, 3)
        hint = f"; close to it: {', '.join(close)}" if close else ""
        raise AttributeError(f"{public}.{name} is not provided by Lamella{hint}")

    return __getattr__


def say_what_is_missing(package):
    """Gives the modules of a package the `__getattr__` of missing, unless they have their own."""
    found = importlib.import_module(package)
    for name in [
        package,
        *(row.name for row in pkgutil.walk_packages(found.__path__, package + ".")),
    ]:
        if any(part.startswith("_") for part in name.split(".")):
            continue
        module = vars(importlib.import_module(name))
        if "__getattr__" not in module:
            module["__getattr__"] = missing(
                name, lambda module=module: module.get("__all__", module)
            )
