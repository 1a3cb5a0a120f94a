"""Training: steps, loops, callbacks, metrics, checkpoints with MindSpore's arguments."""

import os

from lamella import _native
from lamella._arguments import int_of, items_of, number_of, one_of, require
from lamella._native import Tensor
from lamella.dataset.operations import Dataset
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


class MemoryMonitor(_train.MemoryMonitor):
    """Prints memory in use and its peak every `interval` steps."""

    def __init__(self, interval=1):
        super().__init__(interval)


class History(_train.History):
    """Keeps each epoch's loss and metrics: in `epoch` and `history`, dictionaries of lists."""

    epoch = property(lambda self: {"epoch": self._epochs})
    history = property(lambda self: self._values)

    def __init__(self):
        super().__init__()


class EarlyStopping(_train.EarlyStopping):
    """Ends the training when a figure no longer improves. monitor: "loss", "eval_loss", or a
    metric; baseline: what it has to beat."""

    def __init__(
        self,
        monitor="eval_loss",
        min_delta=0,
        patience=0,
        verbose=False,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
    ):
        super().__init__(
            monitor, mode, min_delta, patience, verbose, baseline, restore_best_weights
        )


class ReduceLROnPlateau(_train.ReduceLROnPlateau):
    """Multiplies the learning rate by a factor when a figure no longer improves."""

    def __init__(
        self,
        monitor="eval_loss",
        factor=0.1,
        patience=10,
        verbose=False,
        mode="auto",
        min_delta=0.0001,
        cooldown=0,
        min_lr=0,
    ):
        super().__init__(monitor, mode, min_delta, patience, verbose, factor, cooldown, min_lr)


class LearningRateScheduler(_train.LearningRateScheduler):
    """After every step sets the learning rate to learning_rate_function(rate, step)."""

    def __init__(self, learning_rate_function):
        super().__init__(learning_rate_function)


class LambdaCallback(Callback):
    """A callback made of functions of the run's context."""

    def __init__(
        self,
        on_train_epoch_begin=None,
        on_train_epoch_end=None,
        on_train_step_begin=None,
        on_train_step_end=None,
        on_train_begin=None,
        on_train_end=None,
        on_eval_epoch_begin=None,
        on_eval_epoch_end=None,
        on_eval_step_begin=None,
        on_eval_step_end=None,
        on_eval_begin=None,
        on_eval_end=None,
    ):
        super().__init__()
        turns = dict(locals())
        self._turns = {
            name: turn for name, turn in turns.items() if name.startswith("on_") and turn
        }

    def _call(self, name, run_context):
        if name in self._turns:
            self._turns[name](run_context)


def _forwarder(name):
    return lambda self, run_context: self._call(name, run_context)


for _kind in ("train", "eval"):
    for _turn in ("epoch_begin", "epoch_end", "step_begin", "step_end", "begin", "end"):
        setattr(LambdaCallback, f"on_{_kind}_{_turn}", _forwarder(f"on_{_kind}_{_turn}"))


def _refuse(owner, **options):
    """NotImplementedError for options that were given and have no effect here."""
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"[{owner}] {name} is not provided by Lamella, got {value!r}")


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
    ):
        _refuse(
            "CheckpointConfig", enc_key=enc_key, append_info=append_info,
            keep_checkpoint_per_n_minutes=keep_checkpoint_per_n_minutes,
            exception_save=exception_save,
        )  # fmt: skip
        for name, count in (
            ("save_checkpoint_steps", save_checkpoint_steps),
            ("save_checkpoint_seconds", save_checkpoint_seconds),
            ("keep_checkpoint_max", keep_checkpoint_max),
        ):
            if count is not None and int_of("CheckpointConfig", name, count) < 0:
                raise ValueError(f"[CheckpointConfig] {name} must be at least 0, got {count}")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max
        self.saved_network = saved_network
        self.async_save = bool(async_save)


class ModelCheckpoint(_train.ModelCheckpoint):
    """Saves `prefix-epoch_step.ckpt` in directory, as config says and at the end of training.

    If the directory holds checkpoints of the prefix from before, "_1", "_2", ... is added to it.
    """

    def __init__(self, prefix="CKP", directory=None, config=None):
        config = config or CheckpointConfig()
        require("ModelCheckpoint", "config", config, CheckpointConfig, "a CheckpointConfig")
        super().__init__(
            prefix, directory or os.getcwd(), config.save_checkpoint_steps or 0,
            config.save_checkpoint_seconds or 0, config.keep_checkpoint_max or 0,
            config.saved_network, config.async_save,
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
        _refuse("WithEvalCell", add_cast_fp32=add_cast_fp32)
        super().__init__(network, loss_fn)


@layer
class TrainOneStepCell(_train.TrainOneStepCell):
    """One step of training: the network's output, its gradients, the optimizer's update.

    Gives what the network gives, the loss. sens is what the loss is multiplied by before it is
    differentiated. If a step fails, parameters and state are as they were.
    """

    def __init__(self, network, optimizer, sens=None, return_grad=False):
        _refuse("TrainOneStepCell", return_grad=return_grad)
        super().__init__(network, optimizer, 1.0 if sens is None else sens)


@layer
class TrainOneStepWithLossScaleCell(_train.TrainOneStepWithLossScaleCell):
    """A training step with a loss scale: gives the loss, whether the step was left out because its
    gradients were not finite, and the scale. scale_sense is an update cell, or a fixed scale."""

    def __init__(self, network, optimizer, scale_sense):
        from lamella.amp import FixedLossScaleUpdateCell

        if not isinstance(scale_sense, _native.amp.LossScaleUpdate):
            scale_sense = FixedLossScaleUpdateCell(
                number_of("TrainOneStepWithLossScaleCell", "scale_sense", scale_sense)
            )
        super().__init__(network, optimizer, scale_sense)

    def set_sense_scale(self, sens):
        """The scale of the next step: at least 1."""
        scale = number_of("set_sense_scale", "sens", sens)
        if not 1 <= scale < float("inf"):
            raise ValueError(f"[set_sense_scale] sens must be at least 1 and finite, got {scale}")
        self._find("scale_sense").set_data(Tensor(scale, _native.float32))


@layer
class GradientAccumulation(_train.GradientAccumulation):
    """Called with each micro-batch's gradients (and before them its loss, which it returns), it
    makes one step of the optimizer with their mean for every max_accumulation_step calls; finish()
    makes one of what is left."""

    def __init__(self, max_accumulation_step, optimizer):
        super().__init__(optimizer, max_accumulation_step)

    def __call__(self, *arguments):
        """(gradients) or (loss, gradients)."""
        gradients = tuple(arguments[-1])
        updated = self._run(*gradients)
        return arguments[0] if len(arguments) == 2 else updated


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


class _ByClass:
    """What eval gives: a figure a class, or their mean."""

    def eval(self, average=False):
        import numpy as np

        each = np.array(self._each_class())
        return float(each.mean()) if average else each


def _is_multilabel(name, eval_type):
    if eval_type not in ("classification", "multilabel"):
        raise ValueError(
            f"[{name}] eval_type must be 'classification' or 'multilabel', got {eval_type!r}"
        )
    return eval_type == "multilabel"


class Precision(_ByClass, _train.Precision):
    """Of what was predicted to be of a class, the share that is."""

    def __init__(self, eval_type="classification"):
        super().__init__(_is_multilabel("Precision", eval_type))


class Recall(_ByClass, _train.Recall):
    """Of what is of a class, the share that was predicted to be."""

    def __init__(self, eval_type="classification"):
        super().__init__(_is_multilabel("Recall", eval_type))


class Fbeta(_ByClass, _train.Fbeta):
    """The weighted harmonic mean of precision and recall."""

    def __init__(self, beta):
        super().__init__(beta)


class F1(Fbeta):
    """The harmonic mean of precision and recall."""

    def __init__(self):
        super().__init__(1.0)


class ConfusionMatrix(_train.ConfusionMatrix):
    """How often each class (row) was taken for each (column)."""

    def __init__(self, num_classes, normalize="no_norm", threshold=0.5):
        ways = ("no_norm", "target", "prediction", "all")
        if normalize not in ways:
            raise ValueError(f"[ConfusionMatrix] normalize must be of {ways}, got {normalize!r}")
        super().__init__(num_classes, ways.index(normalize), threshold)

    def eval(self):
        """The matrix [num_classes, num_classes]."""
        import numpy as np

        return np.array(self._matrix()).reshape(self.num_classes, self.num_classes)


class MAE(_train.MAE):
    """The sum of absolute errors by the number of samples."""

    def __init__(self):
        super().__init__()


class MSE(_train.MSE):
    """The sum of squared errors by the number of samples."""

    def __init__(self):
        super().__init__()


# The classes of the metrics whose figure is no single number, by name.
_NAMED = {"precision": Precision, "recall": Recall, "F1": F1}


def names():
    """The names that get_metric_fn knows."""
    return _train.metric_names()


def get_metric_fn(name, *args, **kwargs):
    """A metric by its name."""
    require("get_metric_fn", "name", name, str, "the name of a metric")
    return _NAMED[name](*args, **kwargs) if name in _NAMED else _train.get_metric(name)


def _metrics(metrics):
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        return {n: get_metric_fn(m) if isinstance(m, str) else m for n, m in metrics.items()}
    names = items_of("Model", "metrics", metrics, "names, or a dictionary of metrics")
    return {name: get_metric_fn(name) for name in names}


# ---- The loop ----


def _callbacks(callbacks):
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


def _only_known(owner, kwargs):
    known = {"loss_scale_manager", "keep_batchnorm_fp32"}
    if unknown := set(kwargs) - known:
        raise ValueError(f"[{owner}] unknown arguments: {', '.join(sorted(unknown))}")
    return kwargs


def _boost_accumulation(config):
    """The micro-batches of a step as MindSpore's boost_config_dict states them."""
    boost = (config or {}).get("boost", {})
    if not boost.get("grad_accumulation", False):
        return 1
    return config.get("grad_accumulation", {}).get("grad_accumulation_step", 1)


def _handle_of(argument, dataset):
    require("Model", argument, dataset, Dataset, "a dataset")
    return dataset._handle


class Model(_train.Model):
    """A network with its loss, optimizer and metrics, and the loops over datasets.

    loss_fn: None if the network gives the loss itself. metrics: names, or a dictionary of names and
    metrics. amp_level: see amp.auto_mixed_precision. boost_level is accepted without effect.
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
        """Beside MindSpore's arguments: loss_scale_manager and keep_batchnorm_fp32, for mixed
        precision, and accumulation_steps, the micro-batches of one step of the optimizer."""
        from lamella import amp

        _refuse("Model", eval_indexes=eval_indexes)
        by_boost = _boost_accumulation(kwargs.pop("boost_config_dict", None))
        steps = kwargs.pop("accumulation_steps", by_boost)
        manager = amp.prepare(network, amp_level, **_only_known("Model", kwargs))
        update = manager.get_update_cell() if manager is not None else None
        # Without an update cell no step is left out, and the optimizer divides by its loss_scale.
        sens = manager.get_loss_scale() if manager is not None and update is None else 1.0
        self._by_name = _metrics(metrics)
        super().__init__(
            network, loss_fn, optimizer, self._by_name, eval_network, update, sens, steps
        )

    def train(
        self,
        epoch,
        train_dataset,
        callbacks=None,
        dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
        *,
        resume_from=None,
    ):
        """Trains for epochs over a dataset.

        resume_from: a checkpoint that ModelCheckpoint saved, or a folder of them, whose newest is
        taken: the run goes on where it was saved, with the same bits as if it had not stopped."""
        self._fit(
            epoch, _handle_of("train_dataset", train_dataset), None, 1, _callbacks(callbacks),
            dataset_sink_mode, sink_size, initial_epoch, str(resume_from or ""),
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
        *,
        resume_from=None,
    ):
        """Trains, and evaluates between epochs; resume_from as for train."""
        trained = _handle_of("train_dataset", train_dataset)
        valid = None if valid_dataset is None else _handle_of("valid_dataset", valid_dataset)
        self._fit(
            epoch, trained, valid, valid_frequency, _callbacks(callbacks), dataset_sink_mode,
            sink_size, initial_epoch, str(resume_from or ""),
        )  # fmt: skip

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """The metrics over a dataset."""
        figures = self._eval(_handle_of("valid_dataset", valid_dataset), _callbacks(callbacks))
        for name, metric in self._by_name.items():
            if isinstance(metric, (_ByClass, ConfusionMatrix)):
                figures[name] = metric.eval()
        return figures

    def predict(self, *predict_data, backend=None, config=None):
        """The network's outputs, in inference."""
        return self._predict(*predict_data)


# ---- Checkpoints ----

_FORMATS = ("ckpt", "safetensors")
_NOTES = (bool, int, float, str)  # what append_dict takes beside tensors


def _rows_of(net):
    """The names and tensors that a checkpoint of a network holds."""
    return [(p.name, p) for _, p in net.parameters_and_names()] + net._persistent_buffers()


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
):
    """Writes parameters under their names; save_obj is a Cell, a dictionary or a list of rows.

    append_dict: bools, numbers, texts and Tensors under names of their own, which load_checkpoint
    gives back. NotImplementedError for an encryption key: what is written can be read by anybody.
    """
    _refuse("save_checkpoint", enc_key=enc_key)
    require("save_checkpoint", "ckpt_file_name", ckpt_file_name, (str, os.PathLike), "a path")
    require("save_checkpoint", "append_dict", append_dict, (dict, type(None)), "a dict or None")
    one_of("save_checkpoint", "async_save", async_save, (False, True, "thread", "process"))
    one_of("save_checkpoint", "format", format, _FORMATS)
    if hasattr(save_obj, "parameters_and_names"):
        rows = _rows_of(save_obj)
    elif isinstance(save_obj, dict):
        rows = list(save_obj.items())
    else:
        accepted = 'a Cell, a dict, or a list of {"name": ..., "data": ...}'
        rows = []
        for row in items_of("save_checkpoint", "save_obj", save_obj, accepted):
            require("save_checkpoint", "save_obj", row, dict, accepted)
            if not {"name", "data"} <= set(row):
                raise ValueError(
                    f"[save_checkpoint] a row of save_obj needs the keys 'name' and 'data', "
                    f"got {sorted(map(str, row))}"
                )
            rows.append((row["name"], row["data"]))
    for name, _ in rows:
        require("save_checkpoint", "a name", name, str, "a str")
    rows = [(name, value if isinstance(value, Tensor) else Tensor(value)) for name, value in rows]
    if choice_func is not None:
        rows = [row for row in rows if choice_func(row[0])]
    extra, taken = {}, {name for name, _ in rows}
    for name, value in (append_dict or {}).items():
        require("save_checkpoint", "a name in append_dict", name, str, "a str")
        if name in taken:
            raise ValueError(f"[save_checkpoint] append_dict: a parameter has the name {name!r}")
        if isinstance(value, Tensor):
            rows.append((name, value))
            continue
        kind = next((kind for kind in _NOTES if isinstance(value, kind)), ())
        accepted = "a bool, an int, a float, a str or a Tensor"
        require("save_checkpoint", f"append_dict[{name!r}]", value, kind, accepted)
        extra[name] = repr(kind(value))
    path = str(ckpt_file_name)
    if not path.endswith((".ckpt", ".safetensors")):
        path += "." + format
    _train.save_checkpoint(rows, path, extra)


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
    _refuse("load_checkpoint", dec_key=dec_key)
    require("load_checkpoint", "ckpt_file_name", ckpt_file_name, (str, os.PathLike), "a path")
    one_of("load_checkpoint", "format", format, _FORMATS)
    filtered = _prefixes("filter_prefix", filter_prefix)
    specified = _prefixes("specify_prefix", specify_prefix)
    tensors, extra = _train.load_checkpoint(str(ckpt_file_name))
    chosen = {}
    for name, tensor in tensors.items():
        if filtered and name.startswith(filtered):
            continue
        if specified and not name.startswith(specified):
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


def _prefixes(argument, given):
    """One prefix or several as a tuple."""
    if isinstance(given, str):
        return (given,)
    accepted = "a str, a list of them, or None"
    prefixes = items_of("load_checkpoint", argument, given or (), accepted)
    for prefix in prefixes:
        require("load_checkpoint", argument, prefix, str, accepted)
    return tuple(prefixes)


def _read(text):
    import ast

    if text in ("nan", "inf", "-inf"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Writes values into the parameters of the same names; gives the names that were left out.

    Floats are cast to floats and ints to ints. TypeError for an entry that is no Tensor, unless it
    is a bool, number or text under a name that no parameter has; ValueError, before anything is
    written, for other shapes and kinds of dtypes.
    """
    require("load_param_into_net", "net", net, _native.nn.Cell, "a Cell")
    require("load_param_into_net", "parameter_dict", parameter_dict, dict, "a dict of Parameters")
    tensors = {n: value for n, value in parameter_dict.items() if isinstance(value, Tensor)}
    names = {name for name, _ in _rows_of(net)}
    for name, value in parameter_dict.items():
        kinds = () if name in names else _NOTES
        require(
            "load_param_into_net", f"the value of {name!r}", value, (Tensor, *kinds), "a Tensor"
        )
    return _train.load_param_into_net(net, tensors, strict_load)
