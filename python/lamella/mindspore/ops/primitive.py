"""The base class of primitives."""

from lamella.adapt import Primitive
from lamella.jit import constexpr

__all__ = ["Primitive", "constexpr"]
