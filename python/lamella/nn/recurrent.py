"""Recurrent layers with the arguments MindSpore gives them."""

from lamella import _native
from lamella.nn.cell import layer

_nn = _native.nn

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]


def _states(hx):
    if hx is None:
        return []
    return list(hx) if isinstance(hx, (tuple, list)) else [hx]


class _Layer:
    """What the layers over whole sequences share: h0 (or a tuple of states) and lengths."""

    def construct(self, x, hx=None, seq_length=None):
        sequence, states = self.run(x, _states(hx), seq_length)
        return sequence, states[0] if len(states) == 1 else tuple(states)


class _Gated(_Layer):
    """What LSTM and GRU share: their arguments."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        has_bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=_native.float32,
    ):
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            has_bias,
            batch_first,
            dropout,
            bidirectional,
            dtype,
        )


@layer
class LSTM(_Gated, _nn.LSTM):
    """(sequence, (h, c)) of an LSTM."""


@layer
class GRU(_Gated, _nn.GRU):
    """(sequence, h) of gated recurrent units."""


@layer
class RNN(_Layer, _nn.RNN):
    """(sequence, h) of an Elman network."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        has_bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=_native.float32,
    ):
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            nonlinearity,
            has_bias,
            batch_first,
            dropout,
            bidirectional,
            dtype,
        )


class _Step:
    """What the single steps share."""

    def construct(self, x, hx=None):
        return super().construct(x, *_states(hx))


class _GatedStep(_Step):
    """What LSTMCell and GRUCell share: their arguments."""

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=_native.float32):
        super().__init__(input_size, hidden_size, has_bias, dtype)


@layer
class LSTMCell(_GatedStep, _nn.LSTMCell):
    """(h, c) after one step."""


@layer
class GRUCell(_GatedStep, _nn.GRUCell):
    """h after one step."""


@layer
class RNNCell(_Step, _nn.RNNCell):
    """h after one step."""

    def __init__(
        self, input_size, hidden_size, has_bias=True, nonlinearity="tanh", dtype=_native.float32
    ):
        super().__init__(input_size, hidden_size, has_bias, nonlinearity, dtype)
