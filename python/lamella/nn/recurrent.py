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


@layer
class LSTM(_Layer, _nn.LSTM):
    """(sequence, (h, c)) of an LSTM."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        has_bias=True,
        batch_first=False,
        dropout=0,
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
class GRU(_Layer, _nn.GRU):
    """(sequence, h) of gated recurrent units."""

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


@layer
class LSTMCell(_nn.LSTMCell):
    """(h, c) after one step."""

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=_native.float32):
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x, hx=None):
        return super().construct(x, *_states(hx))


@layer
class GRUCell(_nn.GRUCell):
    """h after one step."""

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=_native.float32):
        super().__init__(input_size, hidden_size, has_bias, dtype)

    def construct(self, x, hx=None):
        return super().construct(x, *_states(hx))


@layer
class RNNCell(_nn.RNNCell):
    """h after one step."""

    def __init__(
        self, input_size, hidden_size, has_bias=True, nonlinearity="tanh", dtype=_native.float32
    ):
        super().__init__(input_size, hidden_size, has_bias, nonlinearity, dtype)

    def construct(self, x, hx=None):
        return super().construct(x, *_states(hx))
