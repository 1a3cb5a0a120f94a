"""Importing this module makes `import mindspore` give Lamella's module of that API."""

import importlib
import importlib.abc
import importlib.util
import sys

_ALIAS, _REAL = "mindspore", "lamella.mindspore"


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        module = importlib.import_module(spec.name.replace(_ALIAS, _REAL, 1))
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has put the alias's there


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != _ALIAS and not fullname.startswith(_ALIAS + "."):
            return None
        real = fullname.replace(_ALIAS, _REAL, 1)
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(f"{fullname} is not provided by Lamella", name=fullname)
        return importlib.util.spec_from_loader(
            fullname, _Loader(), is_package=found.submodule_search_locations is not None
        )


def install():
    """Puts the alias in front of what else may be installed under that name."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


install()
