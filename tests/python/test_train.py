"""Training with Model: callbacks, metrics, checkpoints."""

import time

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Model, Tensor, nn, train

RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(64, 4)).astype(np.float32)
LABELS = (DATA.sum(1) > 0).astype(np.int32)


def dataset(**options):
    rows = ds.NumpySlicesDataset((DATA, LABELS), ["x", "y"], shuffle=options.get("shuffle", False))
    return rows.batch(16)


def model(**options):
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(4, 8, activation="relu"), nn.Dense(8, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(net.trainable_params(), 0.02)
    return Model(net, loss, optimizer, **options), net


def test_training_evaluating_predicting():
    trained, net = model(metrics={"accuracy", "loss"})
    trained.train(20, dataset())
    scores = trained.eval(dataset())
    assert scores["accuracy"] > 0.9
    assert scores["loss"] < 0.4
    assert trained.predict(Tensor(DATA)).shape == (64, 2)
    assert not net.training


def test_callbacks_are_told_and_can_stop():
    turns = []

    class Watch(train.Callback):
        def on_train_begin(self, run_context):
            turns.append("begin")

        def step_end(self, run_context):
            params = run_context.original_args()
            turns.append((params.cur_epoch_num, params.cur_step_num))
            assert isinstance(params.net_outputs, Tensor)
            if params.cur_step_num == 6:
                run_context.request_stop()

        def on_train_epoch_end(self, run_context):
            turns.append("epoch")

    trained, _ = model()
    trained.train(5, dataset(), callbacks=Watch())
    assert turns == [
        "begin", (1, 1), (1, 2), (1, 3), (1, 4), "epoch", (2, 5), (2, 6), "epoch",
    ]  # fmt: skip


def test_errors_in_callbacks_and_networks_reach_the_caller():
    class Broken(train.Callback):
        def step_end(self, run_context):
            raise KeyError("mine")

    trained, _ = model()
    with pytest.raises(KeyError, match="mine"):
        trained.train(1, dataset(), callbacks=[Broken()])

    class Bad(nn.Cell):
        def construct(self, x):
            return x @ Tensor(np.ones((3, 3), np.float32))

    with pytest.raises(ValueError, match="test_train.py"):
        Model(Bad(), nn.MSELoss(), nn.SGD(nn.Dense(1, 1).trainable_params())).train(1, dataset())


def test_a_network_and_functions_of_rows_in_python():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(4, 2)

        def construct(self, x):
            return self.dense(x)

    rows = ds.NumpySlicesDataset((DATA, LABELS), ["x", "y"], shuffle=True)
    rows = rows.map(lambda x: x * 2, "x", num_parallel_workers=2).batch(16)
    net = Net()
    loss = nn.CrossEntropyLoss()
    Model(net, loss, nn.Adam(net.trainable_params(), 0.05)).train(5, rows)
    accuracy = (net(Tensor(DATA * 2)).asnumpy().argmax(1) == LABELS).mean()
    assert accuracy > 0.8


def test_a_metric_written_in_python():
    class Count(train.Metric):
        def __init__(self):
            super().__init__()
            self.clear()

        def clear(self):
            self.rows = 0

        def update(self, *inputs):
            self.rows += inputs[0].shape[0]

        def eval(self):
            return self.rows

    trained, _ = model(metrics={"rows": Count()})
    assert trained.eval(dataset())["rows"] == 64


def test_checkpoints(tmp_path):
    trained, net = model()
    config = train.CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=2)
    saver = train.ModelCheckpoint("net", str(tmp_path), config)
    trained.train(3, dataset(), callbacks=[saver])
    assert len(list(tmp_path.glob("*.ckpt"))) == 2
    parameters = ms.load_checkpoint(saver.latest_ckpt_file_name)
    _, fresh = model()
    ms.load_param_into_net(fresh, parameters)
    assert np.array_equal(fresh(Tensor(DATA)).asnumpy(), net(Tensor(DATA)).asnumpy())
    path = tmp_path / "own.ckpt"
    notes = {"epoch": 3, "rate": 0.1, "best": float("inf"), "last": True, "of": 'nan\'s "kind"'}
    ms.save_checkpoint(net, str(path), append_dict=notes | {"loss": float("nan")})
    loaded = ms.load_checkpoint(str(path))
    assert loaded.items() >= notes.items()
    assert np.isnan(loaded["loss"])
    ms.load_param_into_net(net, loaded)
    assert isinstance(loaded["0.weight"], ms.Parameter)


def saved(rows=None, path="never_written", **options):
    return lambda: ms.save_checkpoint(rows or {"a": Tensor(1.0)}, path, **options)


def loaded_into_net(**entries):
    return lambda: ms.load_param_into_net(nn.Dense(2, 2), entries)


def loaded(**options):
    return lambda: ms.load_checkpoint("never_written", **options)


NOT_SAVED_NOR_LOADED = {
    "value": (loaded_into_net(weight=np.ones((2, 2))), r"the value of 'weight' must be a Tensor"),
    "text": (loaded_into_net(weight="abc"), r"the value of 'weight' must be a Tensor, got 'abc'"),
    "array": (loaded_into_net(other=np.ones(2)), r"the value of 'other' must be a Tensor"),
    "kind": (loaded_into_net(bias=Tensor([1, 2])), r"bias: f32\[2\] in the network, i64\[2\]"),
    "taken": (saved(append_dict={"a": 3}), r"append_dict: a parameter has the name 'a'"),
    "note": (saved(append_dict={"b": object()}), r"append_dict\['b'\] must be a bool, .* a Tensor"),
    "note's name": (saved(append_dict={3: 1}), r"a name in append_dict must be a str, got 3"),
    "notes": (saved(append_dict="abc"), r"append_dict must be a dict or None, got 'abc'"),
    "format": (
        saved(format="banana"),
        r"format must be one of 'ckpt', 'safetensors', got 'banana'",
    ),
    "way": (saved(async_save="banana"), r"async_save must be one of False, True, .* got 'banana'"),
    "option": (saved(append_dic={}), r"unexpected keyword argument 'append_dic'"),
    "row": (
        saved([{"name": "a", "dat": Tensor(1.0)}]),
        r"needs the keys 'name' and 'data', got .*'dat'",
    ),
    "name": (saved({3: Tensor(1.0)}), r"a name must be a str, got 3"),
    "path": (saved(path=3), r"ckpt_file_name must be a path, got 3"),
    "prefix": (loaded(filter_prefix=5), r"filter_prefix must be a str, a list of them, or None"),
    "prefixes": (loaded(specify_prefix=["a", 5]), r"specify_prefix must be a str, .* got 5"),
    "format to load": (loaded(format="banana"), r"format must be one of"),
}


@pytest.mark.parametrize("case", NOT_SAVED_NOR_LOADED)
def test_what_is_neither_saved_nor_loaded_is_named(case):
    call, said = NOT_SAVED_NOR_LOADED[case]
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_one_step_by_hand():
    net = nn.Dense(4, 2)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
    ).set_train()
    losses = [step(Tensor(DATA), Tensor(LABELS)).item() for _ in range(10)]
    assert losses[-1] < losses[0]


def test_persistent_buffers_are_in_checkpoints(tmp_path):
    class Counting(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, 2)
            self.register_buffer("seen", Tensor([1.0, 2.0]))
            self.register_buffer("scratch", Tensor([3.0]), persistent=False)

    net = nn.SequentialCell(Counting())
    net[0].seen += 4
    path = str(tmp_path / "buffers.ckpt")
    ms.save_checkpoint(net, path)
    loaded = ms.load_checkpoint(path)
    assert set(loaded) == {"0.dense.weight", "0.dense.bias", "0.seen"}
    twin = nn.SequentialCell(Counting())
    assert ms.load_param_into_net(twin, loaded, strict_load=True) == ([], [])
    assert twin[0].seen.asnumpy().tolist() == [5, 6]


def test_metrics_by_class():
    outputs = Tensor(np.array([[3, 1, 0], [2, 1, 0], [0, 5, 1], [0, 1, 2]], np.float32))
    labels = Tensor(np.array([0, 1, 1, 1], np.int32))
    expected = {
        train.Precision(): [0.5, 1, 0],
        train.Recall(): [1, 1 / 3, 0],
        train.F1(): [2 / 3, 0.5, 0],
        train.Fbeta(2.0): [5 / 6, 5 / 13, 0],
    }
    for metric, figures in expected.items():
        metric.update(outputs, labels)
        np.testing.assert_allclose(metric.eval(), figures)
        np.testing.assert_allclose(metric.eval(average=True), np.mean(figures))
    matrix = train.ConfusionMatrix(3)
    matrix.update(outputs, labels)
    np.testing.assert_array_equal(matrix.eval(), [[1, 0, 0], [1, 1, 1], [0, 0, 0]])
    assert {"precision", "F1", "loss"} <= set(train.names())
    with pytest.raises(ValueError, match="normalize"):
        train.ConfusionMatrix(3, "all of it")
    trained, _ = model(metrics={"precision": train.Precision(), "matrix": train.ConfusionMatrix(2)})
    figures = trained.eval(dataset())
    assert figures["precision"].shape == (2,)
    assert figures["matrix"].sum() == 64


def test_training_ends_or_slows_when_a_figure_stalls():
    trained, net = model(metrics={"loss"})
    history = train.History()
    stop = train.EarlyStopping(monitor="eval_loss", patience=2, min_delta=100, mode="min")
    trained.fit(20, dataset(), dataset(), callbacks=[history, stop])
    assert len(history.epoch["epoch"]) == 3
    trained, net = model(metrics={"loss"})
    slow = train.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=100)
    trained.fit(3, dataset(), dataset(), callbacks=slow)
    optimizer = trained.train_network.optimizer
    np.testing.assert_allclose(optimizer.get_lr().asnumpy(), 0.02 / 4)
    trained, net = model()
    halved = train.LearningRateScheduler(lambda rate, step: rate / 2 if step == 3 else rate)
    trained.train(1, dataset(), callbacks=halved)
    np.testing.assert_allclose(trained.train_network.optimizer.get_lr().asnumpy(), 0.01)
    with pytest.raises(ValueError, match="mode"):
        train.EarlyStopping(mode="best")


def test_callbacks_made_of_functions():
    seen = []
    trained, _ = model()
    turns = train.LambdaCallback(
        on_train_begin=lambda run_context: seen.append("begin"),
        on_train_step_end=lambda c: seen.append(c.original_args().cur_step_num),
    )
    trained.train(1, dataset(), callbacks=turns)
    assert seen == ["begin", 1, 2, 3, 4]


def test_what_a_python_callback_remembers_is_saved(tmp_path):
    class Best(train.Callback):
        value = 0

        def on_train_step_end(self, run_context):
            self.value += 1

        def state(self):
            return {"value": str(self.value)}

        def restore(self, state):
            self.value = int(state["value"])

    first, second = Best(), Best()
    save = train.ModelCheckpoint("net", str(tmp_path))
    model()[0].train(2, dataset(), callbacks=[first, save])
    model()[0].train(3, dataset(), callbacks=[second, save], resume_from=tmp_path)
    assert second.value == 12


class Stop(train.Callback):
    def __init__(self, way):
        super().__init__()
        self.way = way

    def on_train_step_end(self, run_context):
        if self.way == "error":
            raise KeyError("the user's own")
        run_context.request_stop()


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("way", ["stop", "error"])
def test_training_that_ends_before_its_data_lets_go_of_the_workers(way, processes):
    """They may be in a function of the user's, which needs Python's lock to come to its end."""

    def slow(row):
        time.sleep(0.002)
        return row

    rows = ds.NumpySlicesDataset((DATA, LABELS), ["x", "y"])
    rows = rows.map(slow, input_columns="x", python_multiprocessing=processes).batch(8)
    for _ in range(3):
        trained, _ = model()
        try:
            trained.train(3, rows, callbacks=Stop(way))
            assert way == "stop"
        except KeyError:
            assert way == "error"


@pytest.mark.parametrize("call", ["train", "eval"])
def test_a_dataset_of_no_batch_is_refused(call):
    net = nn.Dense(2, 2)
    trained = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={"loss"})
    empty = ds.GeneratorDataset(lambda: iter(()), ["x", "y"]).batch(1)
    with pytest.raises(ValueError, match=rf"\[Model\.{call}\] the dataset gave no batch"):
        trained.train(1, empty) if call == "train" else trained.eval(empty)
