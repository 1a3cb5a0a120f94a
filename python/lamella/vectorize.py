"""vmap: a function for one example, called for a batch of them at once."""

import functools

from lamella import _native
from lamella._native import Tensor
from lamella.nn.containers import CellList
from lamella.structures import Constant, flat, flatten, rebuilt, restore

_o = _native.operators_by_name


def _check_axes(axes, name):
    """Raises TypeError unless axes are ints and None, or tuples, lists and dicts of them."""
    if isinstance(axes, (tuple, list)):
        for item in axes:
            _check_axes(item, name)
    elif isinstance(axes, dict):
        for item in axes.values():
            _check_axes(item, name)
    elif isinstance(axes, bool) or not isinstance(axes, (int, type(None))):
        kind = type(axes).__name__
        raise TypeError(f"[vmap] {name} takes ints, None and tuples of them, got {kind}")


def _paired(value, axes, what, name):
    """Pairs of items and their axes, for axes that are nested like a value."""
    if isinstance(axes, dict):
        if not isinstance(value, dict) or value.keys() != axes.keys():
            raise ValueError(f"[vmap] {name} for {what} is the dict {axes}, which does not fit it")
        return [(value[key], axes[key]) for key in value]
    if not isinstance(value, (tuple, list)) or len(value) != len(axes):
        if isinstance(value, (tuple, list)):
            given = f"{len(value)} items"
        else:  # among what is returned a number stands for a tensor
            given = "one tensor" if isinstance(value, (int, Tensor)) else type(value).__name__
        raise ValueError(
            f"[vmap] {name} has {len(axes)} axes for {what}, which has {given}: one for each is "
            "needed, or one for all"
        )
    return list(zip(value, axes, strict=True))


def _take(value, axes, what, tensors, in_axes):
    """The structure of an argument; its tensors that have an axis are appended, and the axes."""
    if axes is None:
        return Constant(value)
    if isinstance(axes, int):
        structure = flatten(value, "vmap", tensors)
        in_axes.extend([axes] * (len(tensors) - len(in_axes)))
        return structure
    pairs = _paired(value, axes, what, "in_axes")
    return rebuilt(
        value,
        [
            _take(item, axis, f"{what}[{i}]", tensors, in_axes)
            for i, (item, axis) in enumerate(pairs)
        ],
    )


def _out_axes(structure, axes, what, into):
    """Appends the axis of each tensor of what was returned."""
    if structure is None:
        return
    if axes is None or isinstance(axes, int):
        if isinstance(structure, int):
            into.append(axes)
        else:
            items = structure.values() if isinstance(structure, dict) else structure
            for item in items:
                _out_axes(item, axes, what, into)
        return
    for i, (item, axis) in enumerate(_paired(structure, axes, what, "out_axes")):
        _out_axes(item, axis, f"{what}[{i}]", into)


def _example(tensor, axis, number, count):
    """The part of a tensor for one of the cells."""
    if not -len(tensor.shape) <= axis < len(tensor.shape) or tensor.shape[axis] != count:
        raise ValueError(
            f"[vmap] in_axes is {axis} for a tensor of shape {tensor.shape}, which must have one "
            f"example for each of the {count} cells along that axis"
        )
    return _o.squeeze(_o.narrow(tensor, number, axis, (1,)), (axis,))


def _vmap_cells(cells, in_axes, out_axes):
    """vmap of several cells, whose weights are what differs: each is called for its example."""
    cells = list(cells)
    if not cells or any(type(cell) is not type(cells[0]) for cell in cells):
        kinds = sorted({type(cell).__name__ for cell in cells})
        raise TypeError(f"[vmap] a CellList must hold cells of one class, got {kinds}")

    def ensemble(*args, **kwargs):
        tensors, axes = [], []
        given = _take(args, in_axes, "the arguments", tensors, axes)
        columns, structure, result_axes = [], None, []
        for number, cell in enumerate(cells):
            examples = [
                _example(tensor, axis, number, len(cells))
                for tensor, axis in zip(tensors, axes, strict=True)
            ]
            results, structure = flat(cell(*restore(given, examples), **kwargs), "vmap")
            columns.append(results)
        _out_axes(structure, out_axes, "what is returned", result_axes)
        if None in result_axes:
            raise ValueError("[vmap] out_axes is None for a result that differs from cell to cell")
        stacked = [
            _o.stack(list(column), axis)
            for column, axis in zip(zip(*columns, strict=True), result_axes, strict=True)
        ]
        return restore(structure, stacked)

    return ensemble


def vmap(fn, in_axes=0, out_axes=0):
    """A function that calls fn for each example along axes of its arguments, all at once.

    in_axes says for each positional argument which axis the examples lie along, None where it is
    the same for all of them: one int for all arguments, or a tuple with an item for each, nested
    where an argument is a tuple, list or dict. out_axes says the same of what fn returns. Keyword
    arguments and tensors of outside, such as a Cell's weights, are the same for all examples.

    fn runs once, for one example: it cannot read a tensor's elements, and random draws differ from
    example to example. Its operations are recorded for all examples, so a product for a batch is
    one product. vmap of grad gives a gradient for each example, grad of vmap that of their sum.

    fn may also be a CellList of cells of one class: an ensemble, where example i goes to cell i,
    or all arguments to every cell where in_axes is None. The cells run one after another.

    Raises ValueError where axes do not fit arguments or results, where the numbers of examples
    differ, and where out_axes is None for a result that differs from example to example.
    """
    if not callable(fn):
        kind = type(fn).__name__
        raise TypeError(f"[vmap] fn must be a function, a Cell or a CellList, got {kind}")
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")
    if isinstance(fn, CellList):
        return _vmap_cells(fn, in_axes, out_axes)
    if in_axes is None:
        raise ValueError("[vmap] in_axes is None: at least one argument needs an axis of examples")

    @functools.wraps(fn, assigned=("__module__", "__name__", "__doc__"), updated=())
    def batched(*args, **kwargs):
        tensors, axes, out_structure = [], [], None
        given = _take(args, in_axes, "the arguments", tensors, axes)
        if not tensors:
            raise ValueError(
                "[vmap] at least one positional argument must be a tensor with an axis of "
                f"examples (in_axes is {in_axes}, got {len(args)} arguments)"
            )

        def one(examples):
            nonlocal out_structure
            returned = fn(*restore(given, examples), **kwargs)
            results, out_structure = flat(returned, "vmap")
            result_axes = []
            _out_axes(out_structure, out_axes, "what is returned", result_axes)
            return results, result_axes

        results = _native.control_flow.vmap(one, tensors, axes)
        return restore(out_structure, results)

    return batched
