"""Trains a small transformer to continue a text, letter by letter: an ordinary MindSpore script.

Run it with `lamella run examples/char_transformer.py --data text.txt`; `--help` lists the options.
The last line printed is JSON. Its losses are those of examples/char_transformer.cpp, bit for bit.
"""

import argparse
import glob
import json
import os
import struct

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", required=True, help="a text file")
parser.add_argument("--output", default="output/char_transformer", help="folder for checkpoints")
parser.add_argument("--epochs", type=int, default=1, help="passes over the text")
parser.add_argument("--steps", type=int, default=0, help="stop after so many steps (0: no)")
parser.add_argument("--batch-size", type=int, default=32, help="sequences a step")
parser.add_argument("--context", type=int, default=64, help="letters that it looks back on")
parser.add_argument("--width", type=int, default=64, help="features of a letter")
parser.add_argument("--layers", type=int, default=2, help="blocks of attention")
parser.add_argument("--heads", type=int, default=4, help="parts of the attention")
parser.add_argument("--write", type=int, default=200, help="letters of the sample at the end")
parser.add_argument("--learning-rate", type=float, default=0.003, help="rate of the first step")
parser.add_argument("--seed", type=int, default=42, help="of weights, dropout and order")
parser.add_argument("--mode", choices=["pynative", "graph"], default="pynative")
parser.add_argument("--window", type=int, help="run after every so many operations (1: each alone)")
parser.add_argument("--save-steps", type=int, default=0, help="save every so many batches")
parser.add_argument("--resume", action="store_true", help="go on where a run stopped")
parser.add_argument("--dump-losses", help="file for a line a step: its number and the loss's bits")
options = parser.parse_args()
if options.window is not None:
    os.environ["LAMELLA_WINDOW"] = str(options.window)

import mindspore as ms  # noqa: E402 (the window's size is read when it is loaded)
import mindspore.dataset as ds  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402
from mindspore.train import Callback, CheckpointConfig, Model, ModelCheckpoint  # noqa: E402


class CharTransformer(nn.Cell):
    """The numbers of the letter that follows each: int32 [N, T] to [N, T, letters]."""

    def __init__(self, letters):
        super().__init__()
        self.tokens = nn.Embedding(letters, options.width)
        self.positions = nn.Embedding(options.context, options.width)
        self.blocks = nn.CellList(
            [
                nn.TransformerEncoderLayer(
                    options.width,
                    options.heads,
                    dim_feedforward=4 * options.width,
                    activation="gelu",
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(options.layers)
            ]
        )
        self.norm = nn.LayerNorm((options.width,))
        self.head = nn.Dense(options.width, letters)

    def construct(self, tokens):
        length = tokens.shape[1]
        places = ops.arange(0, length, 1, dtype=ms.int32)
        # A letter does not see those behind it.
        hidden = places.reshape(1, length) > places.reshape(length, 1)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x, src_mask=hidden)
        return self.head(self.norm(x))


class NextLetterLoss(nn.Cell):
    """The mean cross entropy of the letters that really followed."""

    def __init__(self, network):
        super().__init__(auto_prefix=False)
        self.network = network

    def construct(self, tokens, following):
        logits = self.network(tokens)
        return ops.cross_entropy(logits.flatten(start_dim=0, end_dim=1), following.reshape(-1))


class LossTrace(Callback):
    """Writes every step's loss as it is made, and stops the training after a number of steps."""

    def __init__(self):
        super().__init__()
        self.lines, self.losses = [], []

    def on_train_begin(self, run_context):
        made = run_context.original_args().cur_step_num
        if options.dump_losses and made and os.path.exists(options.dump_losses):
            with open(options.dump_losses) as file:
                self.lines = file.read().splitlines()[:made]
        if options.dump_losses:
            self.file = open(options.dump_losses, "w", buffering=1)  # noqa: SIM115
            self.file.writelines(line + "\n" for line in self.lines)

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        self.losses.append(float(params.net_outputs.asnumpy()))
        bits = struct.pack(">f", self.losses[-1]).hex()
        if options.dump_losses:
            self.file.write(f"{params.cur_step_num} {bits}\n")
        if params.cur_step_num % 100 == 0:
            print(f"step {params.cur_step_num}  loss {self.losses[-1]:.4f}", flush=True)
        if params.cur_step_num == options.steps:
            run_context.request_stop()


def write(network, letters, text):
    """Continues a text, each letter drawn with the probability that the network gives it."""
    network.set_train(False)
    while len(text) < options.write:
        seen = np.searchsorted(letters, text[-options.context :])
        logits = network(Tensor(seen[None].astype(np.int32)))
        weights = ops.softmax(logits[0, -1]).asnumpy()
        drawn = float(ops.rand((1,)).asnumpy()[0])
        letter = min(np.searchsorted(np.cumsum(weights), drawn), len(letters) - 1)
        text = np.append(text, letters[letter])
    return bytes(text).decode(errors="replace")


ms.set_context(mode=ms.GRAPH_MODE if options.mode == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(options.seed)
ds.config.set_seed(options.seed)
text = np.fromfile(options.data, np.uint8)
letters, numbers = np.unique(text, return_inverse=True)
numbers = numbers.astype(np.int32)
count = (len(numbers) - 1) // options.context
pieces = [
    numbers[shift : shift + count * options.context].reshape(count, options.context)
    for shift in (0, 1)
]
training = ds.NumpySlicesDataset(tuple(pieces), ["tokens", "following"], shuffle=True)
training = training.batch(options.batch_size, drop_remainder=True)
steps_an_epoch = training.get_dataset_size()
total = options.steps or steps_an_epoch * options.epochs

network = CharTransformer(len(letters))
optimizer = nn.AdamWeightDecay(
    network.trainable_params(),
    learning_rate=nn.CosineDecayLR(0.0, options.learning_rate, total),
    weight_decay=0.01,
)
model = Model(NextLetterLoss(network), optimizer=optimizer)
trace = LossTrace()
folder = f"{options.output}/checkpoints"
config = CheckpointConfig(
    save_checkpoint_steps=options.save_steps or steps_an_epoch, keep_checkpoint_max=2,
    async_save=True,
)  # fmt: skip
stopped = options.resume and glob.glob(f"{glob.escape(folder)}/*.ckpt")
model.train(
    -(-total // steps_an_epoch),
    training,
    callbacks=[trace, ModelCheckpoint("char_transformer", folder, config)],
    resume_from=folder if stopped else None,
)
print(write(network, letters, text[:16]))
print(
    json.dumps(
        {
            "train_loss": float(np.mean(trace.losses[-20:])),
            "steps": len(trace.lines) + len(trace.losses),
            "letters": len(letters),
            "seed": options.seed,
        }
    )
)
