"""Gradients of functions: which arguments and weights, what is returned beside them."""

import functools
from collections.abc import Callable

import numpy as np

from lamella import _native
from lamella._arguments import int_of, items_of, require
from lamella._native import Tensor

_o = _native.operators_by_name


def _floats_in(outputs, name):
    for output in outputs if isinstance(outputs, (tuple, list)) else [outputs]:
        if isinstance(output, (tuple, list)):
            yield from _floats_in(output, name)
        elif isinstance(output, dict) and any(True for _ in _floats_in([*output.values()], name)):
            raise TypeError(f"[{name}] the function must return tuples of Tensors, got a dict")
        elif isinstance(output, Tensor) and output.is_floating_point():
            yield output


def _floats_of(outputs, name):
    """What is differentiated: one tensor or more."""
    tensors = list(_floats_in(outputs, name))
    if not tensors:
        kind = outputs.dtype.name if isinstance(outputs, Tensor) else type(outputs).__name__
        raise TypeError(f"[{name}] the function must return a float Tensor, got {kind}")
    return tensors


def _first_of(outputs, name):
    """What is differentiated with has_aux."""
    if not isinstance(outputs, (tuple, list)) or not outputs:
        kind = type(outputs).__name__
        raise TypeError(
            f"[{name}] with has_aux the function must return a tuple of at least one output, "
            f"got {kind}"
        )
    return outputs[0]


def _target(outputs, sensitivity, name):
    """The tensor whose sum is differentiated."""
    if isinstance(outputs, Tensor):
        return outputs if sensitivity is None else _o.mul(outputs, sensitivity)
    tensors = _floats_of(outputs, name)
    if sensitivity is not None:
        given = _floats_in(sensitivity, name)
        tensors = [_o.mul(t, s) for t, s in zip(tensors, given, strict=True)]
    total = _o.sum(tensors[0])
    for tensor in tensors[1:]:
        total = _o.add(total, _o.sum(tensor))
    return total


def _position(grad_position, name):
    """What is differentiated by: an int, a tuple of them or None."""
    if grad_position is None:
        return None
    if isinstance(grad_position, (tuple, list)):
        return tuple(int_of(name, "grad_position", position) for position in grad_position)
    return int_of(name, "grad_position", grad_position)


def _positions(grad_position):
    return (grad_position,) if isinstance(grad_position, int) else grad_position or ()


def _wrt(args, positions, weights, name):
    """Arguments with what is differentiated among them, and that with the weights as one list."""
    listed = [weights] if isinstance(weights, Tensor) else weights or ()
    listed = items_of(name, "weights", listed, "a Parameter or several")
    args = list(args)
    for position in positions:
        if not -len(args) <= position < len(args):
            raise ValueError(
                f"[{name}] grad_position {position} is outside of {len(args)} arguments"
            )
        if not isinstance(args[position], Tensor):
            kind = type(args[position]).__name__
            raise TypeError(f"[{name}] argument {position} must be a Tensor, got {kind}")
    seen = {id(weight) for weight in listed}
    for position in positions:  # the same tensor in two roles has a gradient for each
        if id(args[position]) in seen:
            args[position] = _o.reshape(args[position], args[position].shape)
        seen.add(id(args[position]))
    return args, [args[position] for position in positions] + listed


def differentiate(fn, args, kwargs, grad_position, weights, has_aux, sensitivity, name):
    """(what fn returned, gradients by position, gradients by weight)."""
    positions = _positions(grad_position)
    args, wrt = _wrt(args, positions, weights, name)

    def run():
        outputs = fn(*args, **kwargs)
        first = _first_of(outputs, name) if has_aux else outputs
        return outputs, _target(first, sensitivity, name)

    outputs, gradients = _native.differentiate(run, wrt)
    return outputs, gradients[: len(positions)], gradients[len(positions) :]


def _arranged(by_position, by_weight, grad_position, weights):
    inputs = by_position[0] if isinstance(grad_position, int) else by_position
    if weights is None:
        return inputs
    parameters = by_weight[0] if isinstance(weights, Tensor) else by_weight
    return parameters if grad_position is None else (inputs, parameters)


def _with_ids(gradients, grad_position, weights):
    def pair(identifiers, values):
        return tuple(zip(identifiers, values, strict=True))

    def identified(value, identifiers):
        if isinstance(value, tuple):
            return pair(identifiers, value)
        return (identifiers[0], value)

    positions = _positions(grad_position)
    names = [w.name for w in ([weights] if isinstance(weights, Tensor) else weights or ())]
    if weights is None:
        return identified(gradients, positions)
    if grad_position is None:
        return identified(gradients, names)
    return identified(gradients[0], positions), identified(gradients[1], names)


def value_and_grad(
    fn, grad_position=0, weights=None, has_aux=False, return_ids=False, sens_param=False
):
    """A function that gives fn's outputs and their gradients."""
    if grad_position is None and weights is None:
        raise ValueError("[value_and_grad] grad_position and weights cannot both be None")

    require("value_and_grad", "fn", fn, Callable, "a function or a Cell")
    grad_position = _position(grad_position, "value_and_grad")

    @functools.wraps(fn, assigned=("__module__", "__name__", "__doc__"), updated=())
    def both(*args, **kwargs):
        sensitivity = None
        if sens_param:
            *args, sensitivity = args
        outputs, by_position, by_weight = differentiate(
            fn, args, kwargs, grad_position, weights, has_aux, sensitivity, "value_and_grad"
        )
        gradients = _arranged(by_position, by_weight, grad_position, weights)
        if return_ids:
            gradients = _with_ids(gradients, grad_position, weights)
        return outputs, gradients

    return both


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False, sens_param=False):
    """A function that gives the gradients of fn's outputs; with has_aux also the other outputs."""
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids, sens_param)

    @functools.wraps(fn, assigned=("__module__", "__name__", "__doc__"), updated=())
    def gradients_only(*args, **kwargs):
        outputs, gradients = both(*args, **kwargs)
        return (gradients, tuple(outputs[1:])) if has_aux else gradients

    return gradients_only


def _cotangent(value, tensor):
    """A number takes the tensor's dtype."""
    kinds = (Tensor, np.ndarray, np.generic, int, float)
    require("vjp", "a cotangent", value, kinds, "a Tensor, an array or a number")
    return Tensor(value, tensor.dtype if isinstance(value, (int, float)) else None)


def _cotangents(tensors, sensitivity):
    """Those of tensors, from what the user gave for them."""
    given = list(_flat(sensitivity))
    if len(given) != len(tensors):
        raise ValueError(
            f"[vjp] the function returned {len(tensors)} float Tensors, got cotangents for "
            f"{len(given)}"
        )
    return [_cotangent(value, tensor) for value, tensor in zip(given, tensors, strict=True)]


def _flat(values):
    for value in values:
        yield from _flat(value) if isinstance(value, (tuple, list)) else [value]


def vjp(fn, *inputs, weights=None, has_aux=False):
    """(outputs, function from their cotangents to those of the inputs); fn runs once.

    With weights, the function gives (gradients of the inputs, of the weights). With has_aux only
    the first output is differentiated, and the others come as a third item. The function may be
    called any number of times; what it needs of the run lives as long as it does.
    """
    require("vjp", "fn", fn, Callable, "a function or a Cell")
    inputs, wrt = _wrt(inputs, tuple(range(len(inputs))), weights, "vjp")

    def run():
        outputs = fn(*inputs)
        differentiated = _first_of(outputs, "vjp") if has_aux else outputs
        tensors = _floats_of(differentiated, "vjp")
        return (outputs, differentiated, tensors), tensors

    (outputs, differentiated, tensors), gradients_of = _native.vjp(run, wrt)

    def pull_back(*sensitivity):
        gradients = gradients_of(_cotangents(tensors, sensitivity))
        by_position, by_weight = gradients[: len(inputs)], gradients[len(inputs) :]
        by_position = by_position[0] if len(inputs) == 1 else by_position
        return by_position if weights is None else (by_position, by_weight)

    return (differentiated, pull_back, outputs[1:]) if has_aux else (outputs, pull_back)


class GradOperation:
    """A higher-order function: GradOperation(...)(net)(*inputs) gives gradients."""

    def __init__(self, get_all=False, get_by_list=False, sens_param=False):
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn, weights=None):
        if self.get_by_list and weights is None:
            weights = fn.trainable_params()

        def gradients(*args, **kwargs):
            sensitivity = None
            if self.sens_param:
                *args, sensitivity = args
            positions = tuple(i for i, a in enumerate(args) if isinstance(a, Tensor))
            if not self.get_all:
                positions = () if self.get_by_list else positions[:1]
            listed = weights if self.get_by_list else None
            _, by_position, by_weight = differentiate(
                fn, args, kwargs, positions, listed, False, sensitivity, "GradOperation"
            )
            if self.get_all:
                return (by_position, by_weight) if self.get_by_list else by_position
            return by_weight if self.get_by_list else by_position[0]

        return gradients
