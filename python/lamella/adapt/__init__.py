"""What the meanings of public names are written with, besides operators: adaptation of arguments.

Functions here turn the arguments of a dialect into operands and attributes of operators, or say in
terms of operators what a name means that no operator stands for.
"""

from lamella.adapt.arguments import *
from lamella.adapt.composed import *
from lamella.adapt.creation import *
from lamella.adapt.elementwise import *
from lamella.adapt.grids import *
from lamella.adapt.indexing import *
from lamella.adapt.layers import *
from lamella.adapt.linear import *
from lamella.adapt.placing import *
from lamella.adapt.properties import *
from lamella.adapt.random import *
from lamella.adapt.reductions import *
from lamella.adapt.shapes import *
from lamella.adapt.statistics import *
