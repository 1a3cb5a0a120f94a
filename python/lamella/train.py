"""Training: steps, loops, callbacks, metrics, checkpoints with MindSpore's arguments."""

import os

from lamella import _native
from lamella._native import Tensor
from lamella.nn.cell import layer
from lamella.nn.parameter import Parameter

_train = _native.train

RunContext = _train.RunContext


class Callback(_train.Callback):
    """Base of callbacks: override what you want to be told of.

    on_train_begin, on_train_epoch_begin, on_train_step_begin, on_train_step_end,
    on_train_epoch_end, on_train_end, the same with on_eval; older programs' begin, epoch_begin,
    step_begin, step_end, epoch_end, end. Each is given a RunContext.
    """

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class LossMonitor(_train.LossMonitor):
    """Prints the loss after every per_print_times steps; 0: never.

    ValueError, which ends the training, for a loss that is not finite.
    """

    def __init__(self, per_print_times=1):
        super().__init__(per_print_times)


class TimeMonitor(_train.TimeMonitor):
    """Prints how long each epoch took, and its steps; data_size: how many they are."""

    def __init__(self, data_size=None, data_time=False):
        super().__init__(data_size or 0)


class History(_train.History):
    """Keeps each epoch's loss and metrics: in `epoch` and `history`, dictionaries of lists."""

    epoch = property(lambda self: {"epoch": self._epochs})
    history = property(lambda self: self._values)

    def __init__(self):
        super().__init__()


class CheckpointConfig:
    """When checkpoints are saved, and how many are kept.

    Every save_checkpoint_steps steps or save_checkpoint_seconds seconds; the last
    keep_checkpoint_max files stay, all if 0. saved_network: what to save in place of the network
    with its optimizer. Others are accepted without effect; NotImplementedError for enc_key.
    """

    def __init__(
        self,
        save_checkpoint_steps=1,
        save_checkpoint_seconds=0,
        keep_checkpoint_max=5,
        keep_checkpoint_per_n_minutes=0,
        integrated_save=True,
        async_save=False,
        saved_network=None,
        append_info=None,
        enc_key=None,
        enc_mode="AES-GCM",
        exception_save=False,
        crc_check=False,
        remove_redundancy=False,
        format="ckpt",
        **kwargs,
    ):
        if enc_key is not None:
            raise NotImplementedError("[CheckpointConfig] encryption is not provided by Lamella")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max
        self.saved_network = saved_network


class ModelCheckpoint(_train.ModelCheckpoint):
    """Saves `prefix-epoch_step.ckpt` in directory, as config says and at the end of training.

    If the directory holds checkpoints of the prefix from before, "_1", "_2", ... is added to it.
    """

    def __init__(self, prefix="CKP", directory=None, config=None):
        config = config or CheckpointConfig()
        super().__init__(
            prefix, directory or os.getcwd(), config.save_checkpoint_steps or 0,
            config.save_checkpoint_seconds or 0, config.keep_checkpoint_max or 0,
            config.saved_network,
        )  # fmt: skip


# ---- Steps ----


@layer
class WithLossCell(_train.WithLossCell):
    """loss_fn(backbone(data...), label), for inputs data..., label."""

    def __init__(self, backbone, loss_fn):
        super().__init__(backbone, loss_fn)


@layer
class WithEvalCell(_train.WithEvalCell):
    """(loss, outputs, label), for inputs data, label: what metrics are given."""

    def __init__(self, network, loss_fn, add_cast_fp32=False):
        super().__init__(network, loss_fn)


@layer
class TrainOneStepCell(_train.TrainOneStepCell):
    """One step of training: the network's output, its gradients, the optimizer's update.

    Gives what the network gives, the loss. sens is what the loss is multiplied by before it is
    differentiated. If a step fails, parameters and state are as they were.
    """

    def __init__(self, network, optimizer, sens=None, return_grad=False):
        super().__init__(network, optimizer, 1.0 if sens is None else float(sens))


# ---- Metrics ----

Metric = _train.Metric


class Accuracy(_train.Accuracy):
    """The share of right predictions.

    eval_type "classification": outputs [N, C, ...] against labels [N, ...] or one-hot;
    "multilabel": outputs and labels of 0 and 1, of one shape, a sample counts if all agree.
    ValueError for others.
    """

    def __init__(self, eval_type="classification"):
        if eval_type not in ("classification", "multilabel"):
            raise ValueError(f"[Accuracy] eval_type must be a kind of labels, got {eval_type!r}")
        super().__init__(eval_type == "multilabel")


class Loss(_train.Loss):
    """The mean loss of the batches."""

    def __init__(self):
        super().__init__()


class TopKCategoricalAccuracy(_train.TopKCategoricalAccuracy):
    """The share of samples whose label is among the k largest outputs."""

    def __init__(self, k):
        super().__init__(k)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose label is the largest output."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose label is among the five largest outputs."""

    def __init__(self):
        super().__init__(5)


def _metrics(metrics):
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        return {n: _train.get_metric(m) if isinstance(m, str) else m for n, m in metrics.items()}
    return {name: _train.get_metric(name) for name in metrics}


# ---- The loop ----


def _callbacks(callbacks):
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


class Model(_train.Model):
    """A network with its loss, optimizer and metrics, and the loops over datasets.

    loss_fn: None if the network gives the loss itself. metrics: names, or a dictionary of names and
    metrics. amp_level and boost_level are accepted without effect.
    """

    def __init__(
        self,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        eval_network=None,
        eval_indexes=None,
        amp_level="O0",
        boost_level="O0",
        **kwargs,
    ):
        super().__init__(network, loss_fn, optimizer, _metrics(metrics), eval_network)

    def train(
        self,
        epoch,
        train_dataset,
        callbacks=None,
        dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
    ):
        """Trains for epochs over a dataset."""
        self._fit(
            epoch, train_dataset._handle, None, 1, _callbacks(callbacks), dataset_sink_mode,
            sink_size, initial_epoch,
        )  # fmt: skip

    def fit(
        self,
        epoch,
        train_dataset,
        valid_dataset=None,
        valid_frequency=1,
        callbacks=None,
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
    ):
        """Trains, and evaluates between epochs."""
        self._fit(
            epoch, train_dataset._handle, valid_dataset._handle if valid_dataset else None,
            valid_frequency, _callbacks(callbacks), dataset_sink_mode, sink_size, initial_epoch,
        )  # fmt: skip

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """The metrics over a dataset."""
        return self._eval(valid_dataset._handle, _callbacks(callbacks))

    def predict(self, *predict_data, backend=None, config=None):
        """The network's outputs, in inference."""
        return self._predict(*predict_data)


# ---- Checkpoints ----


def save_checkpoint(
    save_obj,
    ckpt_file_name,
    integrated_save=True,
    async_save=False,
    append_dict=None,
    enc_key=None,
    enc_mode="AES-GCM",
    choice_func=None,
    crc_check=False,
    format="ckpt",
    **kwargs,
):
    """Writes parameters under their names; save_obj is a Cell, a dictionary or a list of rows."""
    if hasattr(save_obj, "parameters_and_names"):
        rows = [(p.name, p) for _, p in save_obj.parameters_and_names()]
        rows += save_obj._persistent_buffers()
    elif isinstance(save_obj, dict):
        rows = list(save_obj.items())
    else:
        rows = [(row["name"], row["data"]) for row in save_obj]
    rows = [(name, value if isinstance(value, Tensor) else Tensor(value)) for name, value in rows]
    if choice_func is not None:
        rows = [row for row in rows if choice_func(row[0])]
    extra = {}
    for name, value in (append_dict or {}).items():
        if isinstance(value, Tensor):
            rows.append((name, value))
        else:
            extra[name] = repr(value)
    path = str(ckpt_file_name)
    if not path.endswith((".ckpt", ".safetensors")):
        path += "." + format
    _train.save_checkpoint(rows, path, None, extra)


def load_checkpoint(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
    crc_check=False,
    remove_redundancy=False,
    format="ckpt",
):
    """Parameters by name; also written into net, if one is given."""
    tensors, extra = _train.load_checkpoint(str(ckpt_file_name))
    chosen = {}
    for name, tensor in tensors.items():
        if filter_prefix and name.startswith(tuple(_texts(filter_prefix))):
            continue
        if specify_prefix and not name.startswith(tuple(_texts(specify_prefix))):
            continue
        if choice_func is None or choice_func(name):
            chosen[name] = Parameter(tensor, name)
    if not chosen:
        raise ValueError(f"[load_checkpoint] nothing was chosen from {ckpt_file_name}")
    for name, text in extra.items():
        chosen[name] = _read(text)
    if net is not None:
        load_param_into_net(net, chosen, strict_load)
    return chosen


def _texts(prefixes):
    return [prefixes] if isinstance(prefixes, str) else list(prefixes)


def _read(text):
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Writes values into the parameters of the same names; gives the names that were left out."""
    tensors = {n: value for n, value in parameter_dict.items() if isinstance(value, Tensor)}
    return _train.load_param_into_net(net, tensors, strict_load)
