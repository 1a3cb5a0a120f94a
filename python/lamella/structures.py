"""Tuples, lists and dictionaries of tensors as flat lists, and back.

A structure is the nesting with the places of its tensors in the list.
"""

import numpy as np

from lamella._native import Tensor


class Constant:
    """What goes through a structure as it is."""

    def __init__(self, value):
        self.value = value


def rebuilt(value, items):
    """A tuple (named or not), list or dictionary of the same kind with other items."""
    if isinstance(value, dict):
        return dict(zip(value, items, strict=True))
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def flatten(value, name, into, like=None):
    """Appends the tensors of a structure; returns the structure with their places.

    The keys of a dictionary come in the order of `like`, where that has the same.
    """
    if isinstance(value, Tensor):
        into.append(value)
        return len(into) - 1
    if isinstance(value, (tuple, list)):
        shapes = like if isinstance(like, (tuple, list)) and len(like) == len(value) else ()
        items = [
            flatten(item, name, into, shapes[i] if shapes else None) for i, item in enumerate(value)
        ]
        return rebuilt(value, items)
    if isinstance(value, dict):
        given = isinstance(like, dict) and like.keys() == value.keys()
        keys = like if given else value
        return {key: flatten(value[key], name, into, like[key] if given else None) for key in keys}
    if value is None:
        return None
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        into.append(Tensor(value))
        return len(into) - 1
    kind = type(value).__name__
    raise TypeError(f"[{name}] tensors, numbers, tuples, lists and dicts of them: got {kind}")


def restore(structure, tensors):
    """The nesting with tensors in their places."""
    if structure is None:
        return None
    if isinstance(structure, Constant):
        return structure.value
    if isinstance(structure, int):
        return tensors[structure]
    items = structure.values() if isinstance(structure, dict) else structure
    return rebuilt(structure, [restore(item, tensors) for item in items])


def flat(value, name, like=None):
    """The tensors of a nesting, and its structure."""
    tensors = []
    return tensors, flatten(value, name, tensors, like)
