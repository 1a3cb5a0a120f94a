"""Products of matrices and vectors."""

import math

from lamella import _native
from lamella._arguments import require
from lamella.adapt.arguments import size_tuple
from lamella.adapt.elementwise import as_dtype, scaled

_o = _native.operators_by_name


def _turned(x):
    return _o.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def batch_matmul(x, y, transpose_x=False, transpose_y=False):
    return _o.matmul(_turned(x) if transpose_x else x, _turned(y) if transpose_y else y)


def dense(x, weight, bias=None):
    return _o.dense(x, weight, bias) if bias is not None else _o.dense(x, weight)


def addmm(x, left, right, beta=1, alpha=1, add_up=False):
    product = _o.matmul(left, right)
    if add_up:
        product = _o.sum(product, 0)
    return _o.add(scaled(x, beta), scaled(product, alpha))


def tensordot(x, y, axes=2):
    """Sums of products over pairs of axes."""
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        left, right = (list(size_tuple(side)) for side in axes)
    left = [axis % x.ndim for axis in left]
    right = [axis % y.ndim for axis in right]
    free_left = [axis for axis in range(x.ndim) if axis not in left]
    free_right = [axis for axis in range(y.ndim) if axis not in right]
    inner = math.prod(x.shape[axis] for axis in left)
    rows = [x.shape[axis] for axis in free_left]
    columns = [y.shape[axis] for axis in free_right]
    product = _o.matmul(
        _o.reshape(_o.transpose(x, (*free_left, *left)), (math.prod(rows), inner)),
        _o.reshape(_o.transpose(y, (*right, *free_right)), (inner, math.prod(columns))),
    )
    return _o.reshape(product, (*rows, *columns))


def trace(x, offset=0, axis1=0, axis2=1, dtype=None):
    return _o.sum(as_dtype(_o.diagonal(x, offset, axis1, axis2), dtype), -1)


def norm(x, order=None, axis=None, keepdims=False, dtype=None):
    """Vector norms over any axes; the Frobenius norm where no order is given."""
    order = 2 if order is None or order == "fro" else order
    return _o.norm(as_dtype(x, dtype), float(order), axis, keepdims)


def einsum(equation, operands):
    """Einstein's summation, pair by pair from the left."""
    require("einsum", "equation", equation, str, "a str")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    equation = equation.replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"[einsum] {equation!r} names {len(terms)} operands, got {len(operands)}")
    free = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    most = max(
        (
            x.ndim - len(t.replace("...", ""))
            for t, x in zip(terms, operands, strict=False)
            if "..." in t
        ),
        default=0,
    )
    spread = "".join(free[:most])
    terms = [
        t.replace("...", spread[most - (x.ndim - len(t.replace("...", ""))) :]) if "..." in t else t
        for t, x in zip(terms, operands, strict=False)
    ]
    output = output.replace("...", spread)
    if not arrow:
        letters = "".join(terms)
        output = spread + "".join(
            sorted(c for c in set(letters) - set(spread) if letters.count(c) == 1)
        )
    current, letters = _traced(operands[0], terms[0])
    for position, (term, operand) in enumerate(zip(terms[1:], operands[1:], strict=False), 1):
        operand, term = _traced(operand, term)
        later = set(output).union(*terms[position + 1 :])
        current, letters = _pair(current, letters, operand, term, later)
    summed = tuple(i for i, letter in enumerate(letters) if letter not in output)
    if summed:
        current = _o.sum(current, summed)
        letters = "".join(letter for letter in letters if letter in output)
    if letters == output:
        return current
    return _o.transpose(current, tuple(letters.index(letter) for letter in output))


def _traced(x, letters):
    """Repeated letters become a diagonal."""
    for letter in letters:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = _o.diagonal(x, 0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    return x, letters


def _pair(x, xs, y, ys, later):
    """The product of two operands, summed over the letters that nothing later names."""
    batch = [c for c in xs if c in ys and c in later]
    inner = [c for c in xs if c in ys and c not in later]
    alone_x = tuple(i for i, c in enumerate(xs) if c not in ys and c not in later)
    alone_y = tuple(i for i, c in enumerate(ys) if c not in xs and c not in later)
    if alone_x:
        x, xs = _o.sum(x, alone_x), "".join(c for c in xs if c in ys or c in later)
    if alone_y:
        y, ys = _o.sum(y, alone_y), "".join(c for c in ys if c in xs or c in later)
    rows = [c for c in xs if c not in ys]
    columns = [c for c in ys if c not in xs]
    size = {**dict(zip(ys, y.shape, strict=False)), **dict(zip(xs, x.shape, strict=False))}
    for c, length in zip(ys, y.shape, strict=False):
        size[c] = max(size[c], length)

    def arranged(tensor, letters, *groups):
        order = [c for group in groups for c in group]
        turned = _o.transpose(tensor, tuple(letters.index(c) for c in order))
        wide = tuple(size[c] for c in order)
        turned = turned if turned.shape == wide else _o.broadcast_to(turned, wide)
        return _o.reshape(turned, tuple(math.prod(size[c] for c in group) for group in groups))

    product = _o.matmul(arranged(x, xs, batch, rows, inner), arranged(y, ys, batch, inner, columns))
    letters = "".join([*batch, *rows, *columns])
    return _o.reshape(product, tuple(size[c] for c in letters)), letters


def dot(x, y):
    """NumPy's dot: the last axis of x with the last but one of y."""
    if x.ndim <= 2 and y.ndim <= 2:
        return _o.matmul(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (max(y.ndim - 2, 0),)))


def inner(x, y):
    """Sums of products over the last axes."""
    if not (isinstance(x, _native.Tensor) and isinstance(y, _native.Tensor)) or 0 in (
        x.ndim,
        y.ndim,
    ):
        return _o.mul(x, y)
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))
