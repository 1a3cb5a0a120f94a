"""The API of MindSpore 2.10 over Lamella."""

from lamella import Tensor
from lamella.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from lamella.amp import build_train_network as build_train_network
from lamella.autodiff import grad, value_and_grad, vjp
from lamella.context import *
from lamella.jit import JitConfig, jit, jit_class, ms_class, ms_function
from lamella.mindspore import (
    amp,
    boost,
    common,
    context,
    dataset,
    mint,
    nn,
    numpy,
    ops,
    profiler,
    runtime,
    train,
)
from lamella.mindspore.common import dtype
from lamella.mindspore.common.dtype import *
from lamella.mindspore.common.tensor import from_numpy, is_tensor, tensor
from lamella.names import say_what_is_missing as _say_what_is_missing
from lamella.nn.parameter import Parameter, ParameterTuple
from lamella.profiler import Profiler
from lamella.random import get_seed, set_seed
from lamella.runtime import *
from lamella.train import (
    Callback,
    CheckpointConfig,
    LossMonitor,
    Model,
    ModelCheckpoint,
    RunContext,
    TimeMonitor,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)
from lamella.vectorize import vmap

__version__ = "2.10.0"


def set_recursion_limit(recursion_limit=1000):
    """Accepted: recursion follows Python's own limit."""


def run_check():
    """Says that the installation works, after computing something."""
    result = (Tensor([1.0, 2.0]) + 1).asnumpy().tolist()
    print(f"Lamella computes 1 + 1 = {result[0]}: the installation works.")


_say_what_is_missing(__name__)
