"""mindspore.mint.optim: optimizers with the names and defaults of torch's."""

from lamella import _native
from lamella.nn.optimizers import SGD as _SGD
from lamella.nn.optimizers import _made

_AdamW = _native.nn.AdamW


def _groups(params, name, maximize):
    """Parameters as groups: weight decay applies to every one of them."""
    if maximize:
        raise NotImplementedError(f"[{name}] maximize=True is not provided: negate the loss")
    listed = list(params)
    if not listed or not isinstance(listed[0], dict):
        return [{"params": listed}]
    for group in listed:
        unknown = set(group) - {"params", "lr", "weight_decay"}
        if unknown:
            raise NotImplementedError(
                f"[{name}] groups may set params, lr and weight_decay, not {sorted(unknown)}"
            )
    return listed


@_made
class SGD(_SGD):
    """Stochastic gradient descent as nn.SGD, with momentum 0 unless given.

    params: parameters or groups with "params", "lr", "weight_decay". NotImplementedError for
    maximize.
    """

    def __init__(
        self,
        params,
        lr,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
    ):
        super().__init__(
            _groups(params, "SGD", maximize), lr, momentum, dampening, weight_decay, nesterov,
        )  # fmt: skip


def _adam(name, decay, decoupled, says):
    def __init__(  # noqa: N807
        self,
        params,
        lr=0.001,
        betas=(0.9, 0.999),
        eps=1e-08,
        weight_decay=decay,
        amsgrad=False,
        *,
        maximize=False,
    ):
        groups = _groups(params, name, maximize)
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise TypeError(f"[{name}] betas must be two numbers, got {betas!r}")
        _AdamW.__init__(self, groups, lr, betas[0], betas[1], eps, weight_decay, decoupled, amsgrad)
        self.__dict__["is_group"] = True

    doc = f"""Adam (Kingma and Ba, 2015), {says}.

    params: parameters or groups with "params", "lr", "weight_decay". State exp_avg, exp_avg_sq,
    with amsgrad max_exp_avg_sq. NotImplementedError for maximize.
    """
    members = {"__init__": __init__, "__module__": __name__, "__doc__": doc}
    return _made(type(name, (_AdamW,), members))


Adam = _adam("Adam", 0.0, False, "with weight decay added to the gradient")
AdamW = _adam("AdamW", 0.01, True, "with weight decay beside the step")
