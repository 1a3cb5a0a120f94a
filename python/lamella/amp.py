"""Mixed precision: loss scales, and networks whose cells compute in 16-bit floats."""

import numpy as np

from lamella import _native
from lamella._arguments import items_of, number_of, require
from lamella._native import Tensor
from lamella.nn import layers as _layers
from lamella.nn import recurrent as _recurrent
from lamella.nn import transformer as _transformer
from lamella.nn.cell import layer
from lamella.nn.parameter import Parameter
from lamella.structures import rebuilt

_amp = _native.amp


def all_finite(inputs):
    """Whether every element of every float tensor is finite: a bool tensor of rank 0."""
    return _amp.all_finite(tuple(_tensors(inputs)))


def _tensors(tree):
    """The tensors of nested tuples, lists and dictionaries."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from _tensors(tuple(tree.values()))
    elif isinstance(tree, (tuple, list)):
        for part in tree:
            yield from _tensors(part)
    elif tree is not None:
        raise TypeError(f"[all_finite] inputs must be tensors, got {type(tree).__name__}")


def _mapped(function, tree):
    """The function of each tensor, in the same tuples, lists and dictionaries."""
    if isinstance(tree, (tuple, list, dict)):
        parts = tree.values() if isinstance(tree, dict) else tree
        return rebuilt(tree, [_mapped(function, part) for part in parts])
    return function(tree) if isinstance(tree, Tensor) else tree


# ---- Loss scales ----


@layer
class FixedLossScaleUpdateCell(_amp.FixedLossScaleUpdateCell):
    """The same scale for every step. Called with (loss_scale, overflow), it gives the overflow."""

    def __init__(self, loss_scale_value):
        super().__init__(
            number_of("FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value)
        )

    def get_loss_scale(self):
        """The scale of the first step."""
        return self.initial_scale


@layer
class DynamicLossScaleUpdateCell(_amp.DynamicLossScaleUpdateCell):
    """A scale that grows by a factor after scale_window finite steps in a row, and falls by it, not
    below 1, after one that is not. Called with (loss_scale, overflow), it writes the first and
    gives the second."""

    def __init__(self, loss_scale_value, scale_factor, scale_window):
        name = "DynamicLossScaleUpdateCell"
        super().__init__(
            number_of(name, "loss_scale_value", loss_scale_value),
            number_of(name, "scale_factor", scale_factor),
            int(number_of(name, "scale_window", scale_window)),
        )

    def get_loss_scale(self):
        """The scale of the first step."""
        return self.initial_scale


class LossScaler:
    """Base of loss scalers: multiplies losses, divides gradients."""

    def __init__(self, update):
        require("LossScaler", "update", update, _amp.LossScaleUpdate, "an update cell")
        self._update = update
        self.scale_value = Parameter(
            Tensor(update.initial_scale, _native.float32), "scale_value", requires_grad=False
        )

    def scale(self, inputs):
        """The loss, or tensors in tuples, times the scale; of their own dtype."""
        return _mapped(lambda x: x * self.scale_value.astype(x.dtype), inputs)

    def unscale(self, inputs):
        """Gradients divided by the scale, in float32 where they are 16-bit floats."""

        def divided(x):
            wide = x.astype(_native.float32) if x.dtype in _NARROW else x
            return wide / self.scale_value.astype(wide.dtype)

        return _mapped(divided, inputs)

    def adjust(self, grads_finite=None, *, scaler_update=None):
        """Follows a step: grads_finite is what all_finite gave for its gradients. scaler_update,
        another form, says that they were not finite. Gives True."""
        if grads_finite is None and scaler_update is None:
            raise TypeError(f"[{type(self).__name__}.adjust] grads_finite is missing")
        name, given = (
            ("scaler_update", scaler_update)
            if grads_finite is None
            else ("grads_finite", grads_finite)
        )
        call = f"{type(self).__name__}.adjust"
        require(call, name, given, (bool, np.bool_, Tensor), "a bool or a Tensor")
        finite = given if name == "grads_finite" else not given
        self._update.adjust(
            self.scale_value, finite if isinstance(finite, Tensor) else Tensor(bool(finite))
        )
        return True


_NARROW = (_native.float16, _native.bfloat16)


class StaticLossScaler(LossScaler):
    """The same scale for every step."""

    def __init__(self, scale_value):
        super().__init__(FixedLossScaleUpdateCell(scale_value))


class DynamicLossScaler(LossScaler):
    """A scale that follows the gradients, see DynamicLossScaleUpdateCell."""

    def __init__(self, scale_value, scale_factor, scale_window):
        super().__init__(DynamicLossScaleUpdateCell(scale_value, scale_factor, scale_window))
        self.scale_factor, self.scale_window = scale_factor, scale_window

    @property
    def counter(self):
        """The finite steps since the scale changed."""
        return self._update._find("good_steps")


class LossScaleManager:
    """Base of managers: what scale a Model trains with."""

    def get_loss_scale(self):
        """The scale of the next step."""
        raise NotImplementedError(f"[{type(self).__name__}] must define get_loss_scale")

    def update_loss_scale(self, overflow):
        """Follows a step whose gradients were not finite, or were."""
        raise NotImplementedError(f"[{type(self).__name__}] must define update_loss_scale")

    def get_update_cell(self):
        """The cell that does the same for a training step; None if nothing is to be done."""
        raise NotImplementedError(f"[{type(self).__name__}] must define get_update_cell")


class FixedLossScaleManager(LossScaleManager):
    """One scale. With drop_overflow_update, steps that are not finite are left out; without, the
    optimizer divides by its own loss_scale."""

    def __init__(self, loss_scale=128.0, drop_overflow_update=True):
        loss_scale = number_of("FixedLossScaleManager", "loss_scale", loss_scale)
        if not loss_scale >= 1:
            raise ValueError(
                f"[FixedLossScaleManager] loss_scale must be at least 1, got {loss_scale}"
            )
        self._loss_scale, self._drop_overflow_update = loss_scale, drop_overflow_update

    def get_loss_scale(self):
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self):
        """Whether steps that are not finite are left out."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow):
        """Nothing changes."""

    def get_update_cell(self):
        """None unless steps that are not finite are left out."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that follows the gradients, see DynamicLossScaleUpdateCell."""

    def __init__(self, init_loss_scale=16777216, scale_factor=2, scale_window=2000):
        self._cell = DynamicLossScaleUpdateCell(init_loss_scale, scale_factor, scale_window)
        self._made_with = (init_loss_scale, scale_factor, scale_window)
        self._scale = Tensor(float(init_loss_scale), _native.float32)

    def get_loss_scale(self):
        """The scale of the next step that follows update_loss_scale."""
        return self._scale.item()

    def get_drop_overflow_update(self):
        """Steps that are not finite are left out."""
        return True

    def update_loss_scale(self, overflow):
        """Follows a step whose gradients were not finite, or were."""
        self._cell.adjust(self._scale, Tensor(not overflow))

    def get_update_cell(self):
        """A cell that begins with the first scale."""
        return DynamicLossScaleUpdateCell(*self._made_with)


# ---- Networks ----

_LEVELS = {"O0": 0, "O1": 1, "O2": 2, "O3": 3, "auto": 1}


def _level(function, level):
    if not isinstance(level, str) or level not in _LEVELS:
        raise ValueError(f"[{function}] the level must be of {', '.join(_LEVELS)}, got {level!r}")
    return _LEVELS[level]


def auto_mixed_precision(network, amp_level="O0", dtype=_native.float16):
    """Makes cells compute in dtype: O1 and auto those that gain from it, O2 all but normalisation,
    O3 all; O0 none. The network gives float32. Returns the network."""
    _amp.auto_mixed_precision(network, _level("auto_mixed_precision", amp_level), dtype)
    return network


def get_white_list():
    """Classes of cells that gain from 16-bit floats."""
    return [
        _layers.Conv2d, _layers.Conv2dTranspose, _layers.Dense, _recurrent.RNN, _recurrent.LSTM,
        _recurrent.GRU, _recurrent.RNNCell, _recurrent.LSTMCell, _recurrent.GRUCell,
        _transformer.MultiheadAttention,
    ]  # fmt: skip


def get_black_list():
    """Classes of cells that need float32."""
    return [_layers.BatchNorm1d, _layers.BatchNorm2d, _layers.LayerNorm, _layers.GroupNorm]


def custom_mixed_precision(network, *, white_list=None, black_list=None, dtype=_native.float16):
    """Makes the cells of the classes in white_list, or all but those in black_list, compute in
    dtype. Returns the network."""
    if (white_list is None) == (black_list is None):
        raise ValueError("[custom_mixed_precision] give either white_list or black_list")
    given = white_list if black_list is None else black_list
    kinds = items_of("custom_mixed_precision", "the list", given, "a list of classes")
    for kind in kinds:
        if not isinstance(kind, type):
            raise TypeError(f"[custom_mixed_precision] the list must hold classes, got {kind!r}")
    convert = _amp.convert_cells if black_list is None else _amp.convert_all_cells
    convert(network, dtype, lambda cell: isinstance(cell, tuple(kinds)))
    return network


def build_train_network(network, optimizer, loss_fn=None, level="O0", boost_level="O0", **kwargs):
    """One training step in mixed precision, with the level's or the given loss scale."""
    from lamella.train import TrainOneStepCell, TrainOneStepWithLossScaleCell, WithLossCell

    known = {"cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager"}
    if unknown := set(kwargs) - known:
        raise ValueError(f"[build_train_network] unknown arguments: {', '.join(sorted(unknown))}")
    manager = prepare(network, level, **kwargs)
    if loss_fn is not None:
        network = WithLossCell(network, loss_fn)
    update = manager.get_update_cell() if manager else None
    if update is not None:
        return TrainOneStepWithLossScaleCell(network, optimizer, update).set_train()
    return TrainOneStepCell(
        network, optimizer, manager.get_loss_scale() if manager else 1.0
    ).set_train()


def prepare(network, level, cast_model_type=None, keep_batchnorm_fp32=None, **kwargs):
    """Converts the network for a level; gives the manager of the loss scale, or None."""
    number = _level("amp_level", level)
    if keep_batchnorm_fp32 is not None and number >= 2:
        number = 2 if keep_batchnorm_fp32 else 3
    dtype = cast_model_type or _native.float16
    if dtype != _native.float32:
        _amp.auto_mixed_precision(network, number, dtype)
    scales = number == 2 and dtype == _native.float16
    return kwargs["loss_scale_manager"] if "loss_scale_manager" in kwargs else (
        DynamicLossScaleManager() if scales else None
    )  # fmt: skip
