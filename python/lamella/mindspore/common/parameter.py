"""mindspore.common.parameter."""

from lamella.nn.parameter import Parameter, ParameterTuple
