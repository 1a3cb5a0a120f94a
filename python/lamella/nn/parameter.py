"""Parameter: a named tensor that a network owns and an optimizer writes."""

import copy

from lamella import _native
from lamella._arguments import items_of, require
from lamella._native import Tensor


class Parameter(_native.nn.Parameter):
    """A Tensor with a name; whether it is trained says requires_grad."""

    def __new__(
        cls,
        default_input,
        name=None,
        requires_grad=True,
        layerwise_parallel=False,
        parallel_optimizer=True,
        storage_format="",
        device=None,
    ):
        require("Parameter", "name", name, (str, type(None)), "a str or None")
        if isinstance(default_input, float):
            default_input = Tensor(default_input, _native.float32)
        elif isinstance(default_input, int) and not isinstance(default_input, bool):
            default_input = Tensor(default_input, _native.int32)
        elif not isinstance(default_input, Tensor):
            default_input = Tensor(default_input)
        return _native.nn.Parameter.__new__(
            cls, default_input, name, requires_grad, layerwise_parallel, parallel_optimizer
        )

    def __init__(self, *args, **kwargs):
        pass

    @property
    def data(self):
        return self

    def value(self):
        """The value as a plain tensor."""
        return Tensor(self)

    def set_data(self, data, slice_shape=False):
        """Writes a value of the same shape."""
        return self._write(data)

    def clone(self, init="same"):
        """A parameter of the same type; its value the same, or made by an initializer."""
        if isinstance(init, str) and init == "same":
            value = Tensor(self)
        else:
            value = _native.nn.initial_value(init, self.shape, self.dtype)
        return Parameter(value, self.name, self.requires_grad, self.layerwise_parallel)

    def copy(self):
        return self.clone()

    def __deepcopy__(self, memo):
        twin = Parameter(
            Tensor(self.asnumpy().copy(), self.dtype), self.name, self.requires_grad,
            self.layerwise_parallel, self.parallel_optimizer,
        )  # fmt: skip
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self):
        state = (self.asnumpy(), self.dtype, self.name, self.requires_grad, self.__dict__)
        return _restore, state

    def __repr__(self):
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )


def _restore(array, dtype, name, requires_grad, state):
    parameter = Parameter(Tensor(array, dtype), name, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class ParameterTuple(tuple):
    """Parameters in order; names must differ."""

    def __new__(cls, iterable):
        parameters = tuple(items_of("ParameterTuple", "iterable", iterable, "parameters"))
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                kind = type(parameter).__name__
                raise TypeError(f"[ParameterTuple] parameters are expected, got {kind}")
        return super().__new__(cls, parameters)

    def clone(self, prefix, init="same"):
        """The same parameters anew, with a prefix before their names."""
        clones = []
        for parameter in self:
            twin = parameter.clone(init)
            twin.name = f"{prefix}.{parameter.name}"
            clones.append(twin)
        return ParameterTuple(clones)


_native.nn.set_parameter_class(Parameter)
