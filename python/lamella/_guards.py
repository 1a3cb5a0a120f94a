"""The guards of a trace: the Python values that a run depended on, and where each was found.

A value counts as read if code that ran can reach it: a global or a free variable that the code
names, an item of a list or dictionary, an attribute whose name occurs in the code. What cannot be
watched is a reason not to trace.
"""

import abc
import collections
import contextlib
import decimal
import enum
import fractions
import functools
import gc
import operator
import random
import re
import sys
import types
import typing

import numpy as np

from lamella import _native
from lamella._code import facts_of
from lamella._native import Tensor


class _Missing:
    def __repr__(self):
        return "MISSING"


MISSING = _Missing()

# Modules whose functions give the same result for the same arguments, and change nothing else.
PURE_MODULES = {
    "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "collections",
    "_collections", "_collections_abc", "collections.abc", "typing", "types", "numbers", "abc",
    "_abc", "enum", "copyreg", "contextlib", "fractions", "decimal", "string", "re",
    "importlib._bootstrap", "importlib._bootstrap_external",
}  # fmt: skip
_GENERATORS = (
    random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator,
    types.GeneratorType, types.CoroutineType,
)  # fmt: skip
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
# Functions and classes that reach an attribute by a name that no code need hold.
BY_NAME = {getattr, hasattr, setattr, delattr}
_BY_NAME_CLASSES = {operator.attrgetter, operator.methodcaller}
# Classes whose objects never change, or only in ways that their identity shows.
_UNCHANGING = (
    range, slice, property, staticmethod, classmethod, functools.cached_property,
    functools.partialmethod, operator.itemgetter, re.Pattern, re.Match, decimal.Decimal,
    fractions.Fraction, type(NotImplemented), types.CodeType, types.GenericAlias,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.DynamicClassAttribute,
    type(collections.namedtuple("Pair", "a").a), types.UnionType,
    np.generic, np.dtype, np.ufunc, np.finfo, np.iinfo, type(np.mean),
)  # fmt: skip
# Classes of the standard library that an object may be of: their parts are looked at, or they have
# none of their own.
_OPEN = {
    object, list, dict, tuple, set, frozenset, int, float, complex, str, bytes, type,
    collections.OrderedDict, collections.defaultdict, collections.Counter, types.SimpleNamespace,
    functools.partial, contextlib.ContextDecorator, contextlib.AbstractContextManager,
}  # fmt: skip
_CONTAINERS = (collections.OrderedDict, dict, list, tuple, set, frozenset)
_OPEN_MODULES = {abc.__name__, typing.__name__, enum.__name__, "collections.abc", "numbers"}
_MOST_GUARDS = 5000


class UntraceableError(Exception):
    """A reason why no trace is possible."""


def root_of(module):
    """The package of a module's name."""
    return module.partition(".")[0]


def is_package(module):
    """Whether a module is Lamella's."""
    return root_of(module) in ("lamella", "mindspore")


def is_numpy(module):
    """Whether a module is NumPy's."""
    return root_of(module) == "numpy"


def _is_standard(module):
    return root_of(module) in sys.stdlib_module_names


def _own_attributes(value):
    """The dictionary of an object, if it has one; not by its methods, which may do anything."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict else None


def _is_open(base):
    """Whether what an object has of a class is an attribute, or reached by Python code."""
    module = base.__module__
    if base in _OPEN or module in _OPEN_MODULES or issubclass(base, BaseException):
        return True
    if is_package(module):
        return True
    return module not in PURE_MODULES and _native.jit.defined_in_python(base)


def _items_of(value):
    """The items of a list, tuple or set, or the keys of a dictionary, in order; not by an
    `__iter__` of the user's."""
    built_in = next(base for base in type(value).__mro__ if base in _CONTAINERS)
    return list(built_in.__iter__(value))


def _is_constant(value):
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return type(value) in _CONSTANTS


def free_values(function):
    """The values of a function's free variables; MISSING for those that are not set."""
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            values.append(MISSING)
    return values


class Run:
    """What a run entered."""

    def __init__(self):
        self.globals = {}  # of each code that is watched
        self.closures = {}  # (code, identities of its free values) -> those values
        self.cells = {}
        self.names_by_call = set()  # attributes reached by getattr and the like
        self.package_names = set()  # attributes that code of the package reads

    def enter(self, frame):
        """Code whose reads are watched."""
        code = frame.f_code
        self.globals[code] = frame.f_globals
        free = [frame.f_locals.get(name, MISSING) for name in code.co_freevars]
        self.closures[code, tuple(map(id, free))] = free


class Guards:
    """Gathers the conditions under which a run would go the same way again."""

    def __init__(self, run, called, args, kwargs):
        self.rows, self._cells = [], dict(run.cells)
        self._seen, self._queue, self._known = set(), [], set()
        facts = {code: facts_of(code) for code in run.globals}
        for code, of_code in facts.items():
            if of_code.refused:
                raise UntraceableError(f"{code.co_name} uses {of_code.refused}")
        names = set(run.names_by_call).union(*(each.attributes for each in facts.values()))
        # Methods, operators, construct: what calls them need not name them.
        names |= {code.co_name for code in facts if not code.co_name.startswith("<")}
        self._names = sorted(names)
        self._package_names = sorted(names | run.package_names)
        # Whether it can matter that an attribute is not there.
        self._absence_matters = bool(run.names_by_call) or any(f.catches for f in facts.values())
        self._above = any("super" in each.globals for each in facts.values())
        self._watched = run.globals
        # Containers and tensors that are others at the next call, whatever they are now.
        self._given = {}
        for value in (*args, *kwargs.values()):
            self._note_given(value)

        for code, of_code in facts.items():
            self._look_at_code(of_code, run.globals[code])
        for function in _functions_of(run):
            self._guard_function(function)
        self._visit(called, "what is called")
        for cell in list(self._cells.values()):
            self._visit(cell, type(cell).__name__)
        self._follow()
        for value in (*args, *kwargs.values()):
            self._visit(value, "an argument", True)
        self._follow()

    def cells(self):
        """The cells met."""
        return list(self._cells.values())

    def _note_given(self, value):
        kind = type(value)
        if id(value) in self._given:
            return
        if kind in (list, tuple, dict):
            if not _is_constant(value):
                self._given[id(value)] = value
            for item in value.values() if kind is dict else value:
                self._note_given(item)
        elif issubclass(kind, Tensor) and not issubclass(kind, _native.nn.Parameter):
            self._given[id(value)] = value

    def _follow(self):
        while self._queue:
            self._look_into(*self._queue.pop())

    def _add(self, kind, holder, key, expected, number, name):
        key_of_row = (kind, id(holder), key, number)
        if key_of_row in self._known:
            return
        self._known.add(key_of_row)
        if id(expected) in self._given:
            raise UntraceableError(f"{name} is also an argument")
        self.rows.append((kind, holder, key, expected, number, name))
        if len(self.rows) > _MOST_GUARDS:
            raise UntraceableError("it depends on too many Python objects")

    def _visit(self, value, name, is_argument=False):
        if type(value) in _CONSTANTS or value is MISSING or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._queue.append((value, name, is_argument))

    # ---- Code and functions ----

    def _look_at_code(self, facts, among):
        for variable in facts.globals:
            value = among.get(variable, MISSING)
            self._add("item", among, variable, value, 0, f"the global {variable}")
            self._visit(value, f"the global {variable}")
        for module, level in facts.imports:
            package = among.get("__package__") or among.get("__name__", "").rpartition(".")[0]
            if level:
                package = package.rsplit(".", level - 1)[0]
                module = f"{package}.{module}" if module else package
            parts = module.split(".")
            for end in range(1, len(parts) + 1):
                name = ".".join(parts[:end])
                self._visit(sys.modules.get(name, MISSING), f"the module {name}")

    def _guard_function(self, function):
        name, code = function.__name__, function.__code__
        self._add("code", function, None, code, 0, f"the code of {name}")
        defaults = function.__defaults__
        self._add("defaults", function, None, MISSING if defaults is None else defaults, 0,
                  f"a default of {name}")  # fmt: skip
        for value in defaults or ():
            self._visit(value, f"a default of {name}")
        keywords = function.__kwdefaults__
        self._add("keywords", function, None, MISSING if keywords is None else keywords, 0,
                  f"a default of {name}")  # fmt: skip
        if keywords:
            self._visit(keywords, f"a default of {name}")
        free = zip(code.co_freevars, function.__closure__ or (), free_values(function), strict=True)
        for variable, cell, value in free:
            self._add("cell", cell, None, value, 0, f"the variable {variable}")
            self._visit(value, f"the variable {variable}")

    def _look_at_function(self, function, name):
        if function.__code__ in self._watched:
            self._guard_function(function)
        elif is_package(function.__module__ or ""):  # what it calls for its caller
            for value in free_values(function):
                self._visit(value, name)
        own = function.__dict__
        for attribute in self._names if own or self._absence_matters else ():
            if attribute in own or self._absence_matters:
                self._look_at_item(own, attribute, f"{name}.{attribute}")

    # ---- Values ----

    def _look_into(self, value, name, is_argument):
        kind = type(value)
        if issubclass(kind, np.ndarray):
            raise UntraceableError(f"it uses a NumPy array, {name}, whose elements are not watched")
        if issubclass(kind, _GENERATORS):
            raise UntraceableError(f"it uses {name}, which is of class {kind.__name__}")
        if issubclass(kind, Tensor):
            self._look_at_tensor(value, name, is_argument)
        elif kind is types.FunctionType:
            self._look_at_function(value, name)
        elif kind in (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodType):
            self._look_at_method(value, name)
        elif issubclass(kind, types.ModuleType):
            self._look_at_module(value, name)
        elif issubclass(kind, type):
            self._look_at_class(value, name)
        elif not issubclass(kind, _UNCHANGING) and kind.__module__ not in ("nanobind", "typing"):
            self._look_at_object(value, name, is_argument)

    def _look_at_tensor(self, tensor, name, is_argument):
        is_parameter = isinstance(tensor, _native.nn.Parameter)
        if is_parameter or not is_argument:
            self._add("storage", tensor, None, None, 0, name)
        if is_parameter:
            self._look_at_attributes(tensor, name)
            for attribute in ("name", "requires_grad"):
                if attribute in self._names:
                    self._add("attribute", tensor, attribute, getattr(tensor, attribute), 0,
                              f"{name}.{attribute}")  # fmt: skip

    def _look_at_method(self, method, name):
        if isinstance(method, types.BuiltinFunctionType) and method in BY_NAME:
            raise UntraceableError(f"it uses {name}, which finds attributes by name")
        owner = method.__self__
        if owner is not None and not isinstance(owner, types.ModuleType):
            self._visit(owner, name)
        if isinstance(method, types.MethodType):
            self._visit(method.__func__, name)

    def _look_at_module(self, module, name):
        called, own = module.__name__, module.__dict__
        if called.startswith("numpy.random") or (module is np and "random" in self._names):
            raise UntraceableError("it uses numpy.random")
        if is_package(called) or is_numpy(called):
            # Its functions are known, unless the program puts others in their places.
            for attribute in self._names:
                found = own.get(attribute, MISSING)
                if found is not MISSING:
                    self._add("item", own, attribute, found, 0, f"{name}.{attribute}")
                if isinstance(found, types.ModuleType):
                    self._visit(found, f"{name}.{attribute}")
            return
        absence = self._absence_matters or "__getattr__" in own
        for attribute in self._names:
            described = f"{name}.{attribute}"
            if called in PURE_MODULES:
                self._visit(own.get(attribute, MISSING), described)
            elif attribute in own or absence:
                self._look_at_item(own, attribute, described)

    def _look_at_class(self, cls, name):
        if cls in _BY_NAME_CLASSES:
            raise UntraceableError(f"it uses {name}, which finds attributes by name")
        module = cls.__module__
        if is_package(module) or is_numpy(module) or _is_standard(module):
            return
        for attribute in self._names:
            described = f"{name}.{attribute}"
            found = self._look_in_class(cls, attribute, described)
            if found is MISSING and type(cls) is not type:
                found = self._look_in_class(type(cls), attribute, described)
            if found is MISSING:
                self._note_absence(cls, attribute, described)

    def _look_at_object(self, value, name, is_argument):
        kind = type(value)
        if not all(map(_is_open, kind.__mro__)):
            raise UntraceableError(
                f"it uses {name}, of class {kind.__name__}, whose state is not watched"
            )
        if issubclass(kind, _CONTAINERS):
            # Those that are given are compared with what the trace was made with.
            compared = is_argument and kind in (list, tuple, dict)
            self._look_at_elements(value, name, compared)
            if kind in (list, tuple, dict, set, frozenset):
                return
        if isinstance(value, _native.nn.Cell):
            self._cells[id(value)] = value
            for child_name, child in value._children():
                self._visit(child, f"{name}.{child_name}")
        if issubclass(kind, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._visit(part, name)
        self._add("type", value, None, kind, 0, f"the class of {name}")
        self._visit(kind, f"the class of {name}")
        self._look_at_attributes(value, name)

    def _look_at_elements(self, value, name, compared):
        items = _items_of(value)
        if isinstance(value, (dict, set, frozenset)) and not compared:
            self._add("elements", value, None, tuple(items), 0, name)
        if isinstance(value, dict):
            for key in items:
                item, described = dict.__getitem__(value, key), f"{name}[{key!r}]"
                if not compared:
                    self._add("item", value, key, item, 0, described)
                self._visit(item, described, compared)
            return
        if isinstance(value, list) and not compared:
            self._add("length", value, None, None, len(items), name)
            for i, item in enumerate(items):
                self._add("list item", value, None, item, i, f"{name}[{i}]")
        for i, item in enumerate(items):
            self._visit(item, f"{name}[{i}]", compared)

    # ---- Attributes ----

    def _look_at_item(self, holder, key, name):
        value = holder.get(key, MISSING)
        self._add("item", holder, key, value, 0, name)
        self._visit(value, name)

    def _look_at_attributes(self, value, name):
        kind = type(value)
        own = _own_attributes(value)
        of_package = any(is_package(base.__module__) for base in kind.__mro__)
        for attribute in self._package_names if of_package else self._names:
            if own is not None and attribute in own:
                self._look_at_item(own, attribute, f"{name}.{attribute}")
        if is_package(kind.__module__):
            return
        # A method that finds attributes is asked for those that are not there; a cell's finds its
        # parts, which are compared apart.
        asked = not of_package and any("__getattr__" in base.__dict__ for base in kind.__mro__)
        for attribute in self._names:
            if own is not None and attribute in own:
                continue
            described = f"{name}.{attribute}"
            found = self._look_in_class(kind, attribute, described, value)
            if found is MISSING:
                self._note_absence(kind, attribute, described)
            shadows = hasattr(type(found), "__set__")
            if (
                own is not None
                and not shadows
                and (found is not MISSING or asked or self._absence_matters)
            ):
                self._add("item", own, attribute, MISSING, 0, described)

    def _note_absence(self, cls, attribute, name):
        if self._absence_matters:
            self._add("type item", cls, attribute, MISSING, 0, name)

    def _look_in_class(self, cls, attribute, name, of=None):
        """The attribute of a class, or MISSING; of its object `of`, if one is given."""
        holders = [base for base in cls.__mro__ if attribute in base.__dict__]
        if not holders:
            return MISSING
        found = holders[0].__dict__[attribute]
        self._add("type item", cls, attribute, found, 0, name)
        if isinstance(found, types.MemberDescriptorType) and of is not None:
            try:
                held = found.__get__(of, cls)
            except AttributeError:
                held = MISSING
            self._add("attribute", of, attribute, held, 0, name)
            self._visit(held, name)
        self._visit(found, name)
        for base in holders if self._above else ():  # those that super() finds
            value = base.__dict__[attribute]
            self._add("type item", base, attribute, value, 0, name)
            self._visit(value, name)
        return found


def _functions_of(run):
    """The function objects behind the code that was entered."""
    # Those made anew by a function that was entered too depend on nothing that it does not.
    made_anew = {
        constant
        for code in run.globals
        for constant in code.co_consts
        if isinstance(constant, types.CodeType)
    }
    sought = [code for code in run.globals if code not in made_anew]
    candidates = {}
    for each in gc.get_referrers(*sought) if sought else ():
        if isinstance(each, types.FunctionType):
            candidates.setdefault(each.__code__, []).append(each)
    found = []
    for code, free in run.closures:
        if code in made_anew:
            continue
        fitting = [f for f in candidates.get(code, ()) if _identities(f) == free]
        if not fitting and free:
            raise UntraceableError(f"the variables around {code.co_name} are not found")
        found += fitting
    return found


def _identities(function):
    return tuple(map(id, free_values(function)))
