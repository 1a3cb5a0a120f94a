"""Attention and transformers with the arguments MindSpore gives them."""

import copy

from lamella import _native
from lamella._arguments import int_of
from lamella.nn.cell import Cell, layer, make_children
from lamella.nn.containers import CellList
from lamella.nn.layers import Dense, Dropout, LayerNorm

_nn = _native.nn

__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


@layer
class MultiheadAttention(_nn.MultiheadAttention):
    """(result, weights or None): attention in num_heads parts of the features."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        has_bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        dtype=_native.float32,
    ):
        if add_bias_kv or add_zero_attn:
            name = "add_bias_kv" if add_bias_kv else "add_zero_attn"
            raise NotImplementedError(f"[MultiheadAttention] {name}=True is not provided")
        super().__init__(embed_dim, num_heads, dropout, has_bias, kdim, vdim, batch_first, dtype)
        self.__dict__.update(embed_dim=embed_dim, num_heads=num_heads, batch_first=batch_first)
        make_children(
            self, out_proj=lambda: Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=dtype)
        )

    def construct(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
    ):
        return self.run(
            query, key, value, key_padding_mask, attn_mask, need_weights, average_attn_weights
        )


class _TransformerLayer:
    """What the two layers share: arguments and cells. Subclasses name their attentions."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-05,
        batch_first=False,
        norm_first=False,
        dtype=_native.float32,
    ):
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, dtype,
        )  # fmt: skip

        def attention():
            return MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)

        def norm():
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        def drop():
            return Dropout(p=dropout)

        # A residual with its norm for each attention and one for the dense layers.
        numbers = range(1, len(self._attentions) + 2)
        make_children(
            self,
            **dict.fromkeys(self._attentions, attention),
            linear1=lambda: Dense(d_model, dim_feedforward, dtype=dtype),
            linear2=lambda: Dense(dim_feedforward, d_model, dtype=dtype),
            dropout=drop,
            **{f"norm{i}": norm for i in numbers},
            **{f"dropout{i}": drop for i in numbers},
        )


@layer
class TransformerEncoderLayer(_TransformerLayer, _nn.TransformerEncoderLayer):
    """Self-attention and two dense layers."""

    _attentions = ("self_attn",)

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        return self.run(src, src_key_padding_mask, src_mask)


@layer
class TransformerDecoderLayer(_TransformerLayer, _nn.TransformerDecoderLayer):
    """Self-attention, attention to an encoder's output, and two dense layers."""

    _attentions = ("self_attn", "multihead_attn")

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        return self.run(
            tgt, memory, tgt_key_padding_mask, tgt_mask, memory_key_padding_mask, memory_mask
        )


def _copies(cell, count):
    count = int_of("Transformer", "num_layers", count)
    if count < 1:
        raise ValueError(f"[Transformer] num_layers must be at least 1, got {count!r}")
    return CellList([copy.deepcopy(cell) for _ in range(count)])


class TransformerEncoder(Cell):
    """Copies of an encoder layer, one after another."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        for each in self.layers:
            src = each(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """Copies of a decoder layer, one after another."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        for each in self.layers:
            tgt = each(
                tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """An encoder and a decoder."""

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-05,
        batch_first=False,
        norm_first=False,
        dtype=_native.float32,
    ):
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, dtype,
        )  # fmt: skip

        def norm():
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings), num_decoder_layers, norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ValueError(
                f"[Transformer] src and tgt must have one batch size, got {src.shape} and "
                f"{tgt.shape}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
