"""Trains a small convolutional network on Fashion-MNIST: an ordinary MindSpore script.

Run it with `lamella run examples/fashion_mnist.py`; `--help` lists the options. The last line
printed is JSON. Its losses are those of examples/fashion_mnist.cpp, bit for bit.
"""

import argparse
import glob
import json
import os
import struct
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument(
    "--data", default="/usr/share/datasets/fashion-mnist", help="folder of the data"
)
parser.add_argument("--output", default="output/fashion_mnist", help="folder for checkpoints")
parser.add_argument("--epochs", type=int, default=5, help="passes over the training images")
parser.add_argument("--batch-size", type=int, default=64, help="images a step")
parser.add_argument("--steps", type=int, default=0, help="stop after so many steps (0: no)")
parser.add_argument("--images", type=int, default=0, help="images of an epoch (0: all)")
parser.add_argument("--learning-rate", type=float, default=0.002, help="rate of the first step")
parser.add_argument("--seed", type=int, default=42, help="of weights, dropout and order")
parser.add_argument("--mode", choices=["pynative", "graph"], default="pynative")
parser.add_argument("--window", type=int, help="run after every so many operations (1: each alone)")
parser.add_argument(
    "--loop", action="store_true", help="a loop over batches instead of Model.train"
)
parser.add_argument(
    "--loss-scale", type=float, default=0, help="first scale of losses, which then follows the "
    "gradients (0: none)",
)  # fmt: skip
parser.add_argument("--accumulate", type=int, default=1, help="batches of one optimizer step")
parser.add_argument(
    "--save-steps", type=int, default=0, help="save every so many batches (0: every epoch)"
)
parser.add_argument(
    "--resume", action="store_true", help="go on where a run with this output folder stopped"
)
parser.add_argument(
    "--dump-losses", help="file for one line a step: its number and the loss's bits"
)
options = parser.parse_args()
if options.loop and (options.resume or options.loss_scale or options.accumulate > 1):
    parser.error("--loop is the plain loop: without --resume, --loss-scale and --accumulate")
if options.window is not None:
    os.environ["LAMELLA_WINDOW"] = str(options.window)

import mindspore as ms  # noqa: E402 (the window's size is read when it is loaded)
import mindspore.dataset as ds  # noqa: E402
from mindspore import nn  # noqa: E402
from mindspore.dataset import vision  # noqa: E402
from mindspore.train import (  # noqa: E402
    Callback,
    CheckpointConfig,
    DynamicLossScaleManager,
    Model,
    ModelCheckpoint,
)


class Net(nn.Cell):
    """conv-bn-relu-pool twice, dropout, and two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.bn2 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(p=0.3)
        self.dense1 = nn.Dense(64 * 7 * 7, 128, activation="relu")
        self.dense2 = nn.Dense(128, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.pool(self.relu(self.bn2(self.conv2(x))))
        x = self.dropout(self.flatten(x))
        return self.dense2(self.dropout(self.dense1(x)))


def batches(usage, batch_size, drop_remainder):
    """Images as float32 [N, 1, 28, 28], labels as int32 [N]."""
    training = usage == "train"
    count = options.images or None if training else None
    dataset = ds.FashionMnistDataset(options.data, usage, count, shuffle=training)
    transforms = [
        vision.Rescale(1 / 255, 0.0),
        vision.Normalize([0.2860], [0.3530], is_hwc=True),
        vision.HWC2CHW(),
    ]
    dataset = dataset.map(transforms, input_columns="image")
    return dataset.batch(batch_size, drop_remainder=drop_remainder)


class LossTrace(Callback):
    """Writes every step's loss as it is made, and stops the training after a number of steps."""

    def __init__(self, path):
        super().__init__()
        self.losses, self.path, self.file = [], path, None

    def open(self, steps_made=0):
        """A run that goes on keeps the lines of the steps before it."""
        lines = []
        if self.path and steps_made and os.path.exists(self.path):
            with open(self.path) as file:
                lines = [line for line in file if line.endswith("\n")][:steps_made]
        self.losses = [struct.unpack("<f", bytes.fromhex(x.split()[1])[::-1])[0] for x in lines]
        if self.path:
            with open(self.path + ".new", "w") as file:
                file.writelines(lines)
            os.replace(self.path + ".new", self.path)
            self.file = open(self.path, "a", buffering=1)  # noqa: SIM115

    def on_train_begin(self, run_context):
        self.open(run_context.original_args().cur_step_num)

    def on_train_step_end(self, run_context):
        loss = run_context.original_args().net_outputs
        self.add(loss[0] if isinstance(loss, tuple) else loss)
        if len(self.losses) == options.steps:
            run_context.request_stop()

    def add(self, loss):
        self.losses.append(float(loss.asnumpy()))
        step, bits = len(self.losses), struct.pack(">f", self.losses[-1]).hex()
        if self.file:
            self.file.write(f"{step} {bits}\n")
        if step % 100 == 0:
            print(f"step {step}  loss {self.losses[-1]:.4f}", flush=True)


def train_by_loop(network, loss_fn, optimizer, dataset, trace):
    """What Model.train does, written out."""

    def forward(images, labels):
        return loss_fn(network(images), labels)

    step = ms.value_and_grad(forward, None, optimizer.parameters)
    trace.open()
    network.set_train()
    rows = dataset.create_tuple_iterator(num_epochs=options.epochs)
    for _ in range(options.epochs):
        for images, labels in rows:
            loss, gradients = step(images, labels)
            optimizer(gradients)
            trace.add(loss)
            if len(trace.losses) == options.steps:
                return


ms.set_context(mode=ms.GRAPH_MODE if options.mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(options.seed)
ds.config.set_seed(options.seed)
training = batches("train", options.batch_size, True)
test = batches("test", 500, False)
steps_an_epoch = training.get_dataset_size()

network = Net()
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
updates = steps_an_epoch * options.epochs // options.accumulate
rate = nn.CosineDecayLR(0.0, options.learning_rate, updates)
optimizer = nn.Adam(network.trainable_params(), learning_rate=rate)
scaling = {}
if options.loss_scale:
    scaling["loss_scale_manager"] = DynamicLossScaleManager(options.loss_scale, 2, 50)
model = Model(
    network, loss_fn, optimizer, metrics={"accuracy", "loss"},
    accumulation_steps=options.accumulate, **scaling,
)  # fmt: skip
trace = LossTrace(options.dump_losses)

began = time.time()
if options.loop:
    train_by_loop(network, loss_fn, optimizer, training, trace)
else:
    config = CheckpointConfig(
        save_checkpoint_steps=options.save_steps or steps_an_epoch,
        keep_checkpoint_max=2,
        async_save=True,
    )
    folder = f"{options.output}/checkpoints"
    checkpoints = ModelCheckpoint("fashion_mnist", folder, config)
    stopped = options.resume and glob.glob(f"{glob.escape(folder)}/*.ckpt")
    model.train(
        options.epochs,
        training,
        callbacks=[trace, checkpoints],
        resume_from=folder if stopped else None,
    )
seconds = time.time() - began
metrics = model.eval(test)
print(
    json.dumps(
        {
            "test_accuracy": metrics["accuracy"],
            "test_loss": metrics["loss"],
            "epochs": options.epochs,
            "steps": len(trace.losses),
            "train_loss": trace.losses[-1],
            "images_per_second": len(trace.losses) * options.batch_size / seconds,
            "seconds": seconds,
            "seed": options.seed,
        }
    )
)
