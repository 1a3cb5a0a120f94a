"""Settings of a program."""

from lamella.context import *
