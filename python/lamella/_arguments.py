"""Errors of arguments: `[Dropout] p must be a float, got 'half'`.

What Python code uses is checked by require, number_of, int_of and items_of. What the binding cannot
convert comes to explained: nanobind lists the signatures of the C++ function and the types that it
was given, and here that becomes the same sentence.
"""

import numbers
import operator
import re
from collections.abc import Iterable

import numpy as np

from lamella._native import Tensor

_ARTICLES = {"int": "an int", "object": "given"}
_SCALARS = {
    "Any": object, "handle": object, "bool": (bool, np.bool_), "str": str,
    "int": (numbers.Integral, np.integer), "float": (numbers.Real, np.number), "bytes": bytes,
    "dict": dict, "tuple": tuple, "set": set, "type": type, "None": type(None),
}  # fmt: skip
_SEQUENCES = ("Sequence", "list", "Iterable")


def require(call, argument, value, kinds, accepted):
    """Raises TypeError unless an argument of a call is of one of the classes."""
    if not isinstance(value, kinds):
        raise TypeError(f"[{call}] {argument} must be {accepted}, got {_shown(value)}")


def number_of(call, argument, value):
    """The number, or one element of a tensor, that an argument of a call is."""
    if isinstance(value, Tensor) and value.size == 1:
        return float(value.item())
    require(call, argument, value, (numbers.Real, np.number), "a number")
    return float(value)


def int_of(call, argument, value):
    """The int that an argument of a call is, of any class of ints; True and False are none."""
    try:
        if not isinstance(value, (bool, np.bool_)):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"[{call}] {argument} must be an int, got {_shown(value)}")


def one_of(call, argument, value, choices):
    """Raises ValueError unless an argument of a call is one of the choices."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        accepted = ", ".join(map(repr, choices))
        raise ValueError(f"[{call}] {argument} must be one of {accepted}, got {_shown(value)}")


def items_of(call, argument, value, accepted):
    """The items of an argument of a call."""
    require(call, argument, value, Iterable, accepted)
    return list(value)


def _split(text, at):
    """Parts of a text between separators that stand in no brackets or quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if char == at and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    parts.append(current.strip())
    return [part for part in parts if part]


def _short(annotation):
    """A type without the modules of its names."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", annotation)


class _Parameter:
    def __init__(self, text):
        declared = _split(text, "=")[0]
        self.name, _, annotation = declared.partition(":")
        self.name, self.types = self.name.strip(), _split(_short(annotation.strip()), "|")

    def fits(self, value):
        return not self.types or any(_fits(kind, value) for kind in self.types)

    def accepted(self):
        kinds = [_ARTICLES.get(kind, f"a {kind}") for kind in self.types if kind != "None"]
        return " or ".join(kinds + ["None"] * ("None" in self.types))


def _fits(kind, value):
    kind, _, inside = kind.partition("[")
    if kind == "object":
        return value is not None
    if kind in _SCALARS:
        return isinstance(value, _SCALARS[kind])
    if kind in _SEQUENCES:
        items = _split(inside.rstrip("]"), "|") if inside else ["object"]
        try:
            return all(any(_fits(item, each) for item in items) for each in value)
        except TypeError:
            return False
    if kind == "Callable":
        return callable(value)
    return any(kind == each.__name__ for each in type(value).__mro__)


def _shown(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value) if len(repr(value)) < 60 else type(value).__name__
    return type(value).__name__


def _called(function, args):
    """The name by which a user knows a bound function."""
    name = function.__name__.lstrip("_")
    owner = type(args[0]).__name__ if args else ""
    if type(function).__name__ != "nb_method":
        return name
    if name == "init__":
        return owner
    if not name:  # of a property
        name = next(
            (
                key
                for kind in type(args[0]).__mro__
                for key, each in vars(kind).items()
                if isinstance(each, property) and function in (each.fget, each.fset)
            ),
            "",
        )
    # Layers whose call the package arranges are run by a method that no user calls.
    return owner if name == "run" else f"{owner}.{name}"


def _signatures(text):
    """The lists of parameters in what nanobind says."""
    for line in text.splitlines():
        found = re.match(r"\s+(?:\d+\. )?\w*(\(.*\))(?: -> .*)?$", line)
        if found:
            inner = found[1][1:-1]
            yield [_Parameter(each) for each in _split(inner, ",") if each not in ("*", "/")]


def explained(function, args, kwargs, text):
    """What is wrong with the arguments of a call that the binding refused with a text."""
    name = _called(function, args)
    reasons = []
    for parameters in _signatures(text):
        given = dict(zip([each.name for each in parameters], args, strict=False)) | kwargs
        wrong = [p for p in parameters if p.name in given and not p.fits(given[p.name])]
        if len(args) <= len(parameters) and wrong:
            first = wrong[0]
            reasons.append(
                f"{first.name} must be {first.accepted()}, got {_shown(given[first.name])}"
            )
    if len(reasons) == 1:
        return f"[{name}] {reasons[0]}"
    takes = [
        f"({', '.join(each.name for each in parameters if each.name != 'self')})"
        for parameters in _signatures(text)
    ]
    is_method = type(function).__name__ == "nb_method"
    shown = [_shown(each) for each in args[is_method:]]
    shown += [f"{key}={_shown(each)}" for key, each in kwargs.items()]
    if not takes:
        return f"[{name}] an argument has another type than is expected: got ({', '.join(shown)})"
    return f"[{name}] takes {' or '.join(takes)}, got ({', '.join(shown)})"
