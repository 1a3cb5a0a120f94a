"""mindspore.runtime."""

from lamella.runtime import *
