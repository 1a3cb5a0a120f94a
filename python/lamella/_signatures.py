"""Signatures written as text, as inspect.signature gives them."""

import inspect
import re

from lamella import _native


class _Literal:
    """A default that prints as it is written in the table."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def __eq__(self, other):
        return repr(other) == self.text

    def __hash__(self):
        return hash(self.text)


def _default(text):
    if match := re.fullmatch(r"mindspore\.(\w+)", text):
        return getattr(_native, {"bool": "bool_"}.get(match[1], match[1]), _Literal(text))
    return eval(text, {"__builtins__": {}}, {"inf": float("inf")})


def read_signature(text):
    """An inspect.Signature from "(x, axis=None, *, keepdims=False)"."""
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    depth, current, parts = 0, "", []
    for char in text[1:-1] + ",":
        if char == "," and depth == 0:
            if current.strip():
                parts.append(current.strip())
            current = ""
            continue
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        current += char
    for part in parts:
        name, equals, default = part.partition("=")
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif name.startswith("**"):
            parameters.append(inspect.Parameter(name[2:], inspect.Parameter.VAR_KEYWORD))
        elif name.startswith("*"):
            parameters.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            value = _default(default) if equals else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name, kind, default=value))
    return inspect.Signature(parameters)
