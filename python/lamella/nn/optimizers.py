"""Optimizers and schedules of rates with the arguments MindSpore gives them."""

import functools
from collections.abc import Iterable

from lamella import _native
from lamella._arguments import items_of, require
from lamella._native import Tensor
from lamella.nn.cell import _is_native, layer

_nn = _native.nn


def _parameters(self):
    from lamella.nn.parameter import ParameterTuple

    return ParameterTuple(self._parameters)


def _get_lr(self):
    """The rate of the next step: one, or one a parameter for groups."""
    rates = [self._learning_rate(i) for i in range(len(self._parameters))]
    if self.__dict__.get("is_group"):
        return tuple(Tensor(rate, _native.float32) for rate in rates)
    return Tensor(rates[0], _native.float32)


def _decay_weight(self, gradients):
    """Gradients with weight decay taken in."""
    made = []
    for i, (gradient, parameter) in enumerate(zip(gradients, self._parameters, strict=True)):
        decay = self._weight_decay(i)
        made.append(gradient + parameter * decay if decay else gradient)
    return tuple(made)


def _scale_grad(self, gradients):
    if self.loss_scale == 1.0:
        return gradients
    return tuple(gradient / self.loss_scale for gradient in gradients)


def _step(self, gradients):
    """One step: the gradients of all parameters as one tuple."""
    kinds = () if isinstance(gradients, (Tensor, str)) else Iterable
    require(type(self).__name__, "gradients", gradients, kinds, "a tuple of Tensors")
    gradients = tuple(gradients)
    hooked = "_pre_hooks" in self.__dict__ or "_forward_hooks" in self.__dict__
    if _is_native(self) and not hooked:
        return self._run(*gradients)
    return self._scoped(_one_step, self, gradients)


def _one_step(self, gradients):
    return self._run(*gradients) if _is_native(self) else self.construct(gradients)


OptimizerBase = _nn.OptimizerBase
OptimizerBase.__call__ = _step
OptimizerBase._construct = lambda self, *gradients: self.construct(gradients)
OptimizerBase.parameters = property(_parameters)
OptimizerBase.get_lr = _get_lr
OptimizerBase.decay_weight = _decay_weight
OptimizerBase.scale_grad = _scale_grad
OptimizerBase.flatten_gradients = lambda self, gradients: gradients
OptimizerBase.gradients_centralization = lambda self, gradients: gradients
OptimizerBase.global_step = property(lambda self: Tensor(self._step, _native.int32))


_ACCEPTED = "parameters, or groups of them as dictionaries"


def _listed(params):
    listed = list(params)
    return listed, bool(listed) and isinstance(listed[0], dict)


def _take_parts(self, children, parameters, buffers):
    """An optimizer follows its parameters; its state gets the values of the other's."""
    for name, parameter in parameters:
        self._find(name).set_data(parameter)


OptimizerBase._take_parts = _take_parts


def _made(kind):
    """Notes what it was made with, for copies; parameters given as an iterator are listed."""
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self, params, *args, **kwargs):  # noqa: N807
        params = items_of(type(self).__name__, "params", params, _ACCEPTED)
        made(self, params, *args, **kwargs)
        self.__dict__["_made_with"] = ((params, *args), kwargs)

    kind.__init__ = __init__
    return kind


class Optimizer(_nn.Optimizer):
    """Base of optimizers written in Python: construct(gradients) writes self.parameters.

    parameters: a list of parameters, or of groups, {"params": [...]} with "lr", "weight_decay",
    "grad_centralization" of their own; one group {"order_params": [...]} gives the order.
    learning_rate: a number, a list of numbers (one a step) or a schedule. ValueError for no
    parameters, one that occurs twice, and negative rates.
    """

    def __init__(self, learning_rate, parameters, weight_decay=0.0, loss_scale=1.0):
        parameters = items_of(type(self).__name__, "parameters", parameters, _ACCEPTED)
        listed, grouped = _listed(parameters)
        super().__init__(learning_rate, listed, weight_decay, loss_scale)
        self.__dict__["_made_with"] = ((learning_rate, listed, weight_decay, loss_scale), {})
        self.__dict__["is_group"] = grouped


@_made
class Adam(_nn.Adam):
    """Adam (Kingma and Ba, 2015): steps by the mean of gradients over the root of that of squares.

    params, learning_rate: as in Optimizer. weight_decay times the parameter is added to the
    gradient. use_amsgrad divides by the largest second moment so far (Reddi et al., 2018). State
    moment1, moment2 (and vhat). ValueError for betas outside (0, 1) and eps not above 0.
    """

    def __init__(
        self,
        params,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
        use_amsgrad=False,
        *,
        use_lazy=False,
        use_offload=False,
    ):
        for name, given in (("use_lazy", use_lazy), ("use_offload", use_offload)):
            if given:
                raise NotImplementedError(f"[Adam] {name}=True is not provided by Lamella")
        listed, grouped = _listed(params)
        super().__init__(
            listed, learning_rate, beta1, beta2, eps, use_nesterov, weight_decay, loss_scale,
            use_amsgrad,
        )  # fmt: skip
        self.__dict__["is_group"] = grouped


@_made
class AdamWeightDecay(_nn.AdamWeightDecay):
    """Adam without correction of the bias, with decay beside the gradient's step.

    p - rate (m / (sqrt(v) + eps) + weight_decay p). params, learning_rate: as in Optimizer. State
    adam_m, adam_v.
    """

    def __init__(
        self, params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-06, weight_decay=0.0
    ):
        listed, grouped = _listed(params)
        super().__init__(listed, learning_rate, beta1, beta2, eps, weight_decay)
        self.__dict__["is_group"] = grouped


@_made
class SGD(_nn.SGD):
    """Stochastic gradient descent, with momentum if that is not 0.

    v = momentum v + (1 - dampening) g, the first v being g; p - rate v, with nesterov
    p - rate (g + momentum v). params, learning_rate: as in Optimizer.
    """

    def __init__(
        self,
        params,
        learning_rate=0.1,
        momentum=0.0,
        dampening=0.0,
        weight_decay=0.0,
        nesterov=False,
        loss_scale=1.0,
    ):
        listed, grouped = _listed(params)
        super().__init__(
            listed, learning_rate, momentum, dampening, weight_decay, nesterov, loss_scale
        )
        self.__dict__["is_group"] = grouped


@_made
class Momentum(_nn.Momentum):
    """v = momentum v + g; p - rate v, with use_nesterov p - rate (g + momentum v).

    params, learning_rate: as in Optimizer. State moments.
    """

    def __init__(
        self, params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=False
    ):
        listed, grouped = _listed(params)
        super().__init__(listed, learning_rate, momentum, weight_decay, loss_scale, use_nesterov)
        self.__dict__["is_group"] = grouped


@_made
class RMSProp(_nn.RMSProp):
    """Steps by the gradient over the root of its mean square (Tieleman and Hinton, 2012).

    centered takes the square of the mean away before. decay: of the means. params,
    learning_rate: as in Optimizer. State mean_square, moment (and mean_grad).
    """

    def __init__(
        self,
        params,
        learning_rate=0.1,
        decay=0.9,
        momentum=0.0,
        epsilon=1e-10,
        use_locking=False,
        centered=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        listed, grouped = _listed(params)
        super().__init__(
            listed, learning_rate, decay, momentum, epsilon, centered, loss_scale, weight_decay
        )
        self.__dict__["is_group"] = grouped


@_made
class Adagrad(_nn.Adagrad):
    """Steps by the gradient over the root of the sum of all squares so far, which begins as accum.

    params, learning_rate: as in Optimizer. NotImplementedError for update_slots=False.
    """

    def __init__(
        self,
        params,
        accum=0.1,
        learning_rate=0.001,
        update_slots=True,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        if not update_slots:
            raise NotImplementedError("[Adagrad] update_slots=False is not provided by Lamella")
        listed, grouped = _listed(params)
        super().__init__(listed, accum, learning_rate, loss_scale, weight_decay)
        self.__dict__["is_group"] = grouped


@_made
class AdaMax(_nn.AdaMax):
    """Adam with the largest decayed gradient in place of the root mean square.

    params, learning_rate: as in Optimizer. Kingma and Ba, 2015, section 7.
    """

    def __init__(
        self,
        params,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        listed, grouped = _listed(params)
        super().__init__(listed, learning_rate, beta1, beta2, eps, weight_decay, loss_scale)
        self.__dict__["is_group"] = grouped


@_made
class Lamb(_nn.Lamb):
    """Adam's step, scaled in each parameter to the parameter's own norm (You et al., 2020).

    params, learning_rate: as in Optimizer.
    """

    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-06, weight_decay=0.0):
        listed, grouped = _listed(params)
        super().__init__(listed, learning_rate, beta1, beta2, eps, weight_decay)
        self.__dict__["is_group"] = grouped


# ---- Schedules ----

LearningRateSchedule = _nn.LearningRateSchedule


@layer
class ExponentialDecayLR(_nn.ExponentialDecayLR):
    """learning_rate decay_rate^(step / decay_steps); is_stair: whole quotients only."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


@layer
class NaturalExpDecayLR(_nn.NaturalExpDecayLR):
    """learning_rate exp(-decay_rate step); is_stair: steps in stairs of decay_steps."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


@layer
class InverseDecayLR(_nn.InverseDecayLR):
    """learning_rate / (1 + decay_rate step / decay_steps); is_stair: whole quotients only."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__(learning_rate, decay_rate, decay_steps, is_stair)


@layer
class CosineDecayLR(_nn.CosineDecayLR):
    """From max_lr to min_lr along half a cosine in decay_steps steps, then min_lr."""

    def __init__(self, min_lr, max_lr, decay_steps):
        super().__init__(min_lr, max_lr, decay_steps)


@layer
class PolynomialDecayLR(_nn.PolynomialDecayLR):
    """From learning_rate to end_learning_rate, as (1 - step / decay_steps)^power.

    With update_decay_steps, decay_steps grows by whole multiples so that it is never passed.
    """

    def __init__(
        self, learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=False
    ):
        super().__init__(learning_rate, end_learning_rate, decay_steps, power, update_decay_steps)


@layer
class WarmUpLR(_nn.WarmUpLR):
    """From 0 to learning_rate in warmup_steps steps, straight, then learning_rate."""

    def __init__(self, learning_rate, warmup_steps):
        super().__init__(learning_rate, warmup_steps)
