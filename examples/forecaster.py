"""Forecasts a monthly series with an LSTM and compares it with last year's value: MindSpore code.

The series is a CSV file with a row a year and a column a month, such as the sea temperatures of El
Nino that the package statsmodels brings (the default, if it is installed). Run it with `lamella run
examples/forecaster.py`; the last line printed is JSON.
"""

import argparse
import importlib.util
import json
import os

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", help="the CSV file: YEAR,JAN,...,DEC")
parser.add_argument("--epochs", type=int, default=60, help="passes over the training windows")
parser.add_argument("--seed", type=int, default=1, help="of weights and order")
options = parser.parse_args()

import mindspore as ms  # noqa: E402
import mindspore.dataset as ds  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, nn, ops  # noqa: E402

PAST, AHEAD, TEST = 24, 3, 120  # months seen, months forecast, months kept for the test


def path_of_series():
    if options.data:
        return options.data
    package = importlib.util.find_spec("statsmodels")
    if package is None:
        parser.error("--data is needed: the package statsmodels, whose series is used, is missing")
    return os.path.join(os.path.dirname(package.origin), "datasets", "elnino", "elnino.csv")


class Forecaster(nn.Cell):
    """From [N, PAST, 3] (value, and the month as a point on a circle) to [N, AHEAD]."""

    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.dense = nn.Dense(hidden, AHEAD)

    def construct(self, x):
        _, (state, _) = self.lstm(x)
        return self.dense(state[0])


values = np.loadtxt(path_of_series(), delimiter=",", skiprows=1)[:, 1:].reshape(-1)
months = np.arange(len(values)) % 12
known = len(values) - TEST
# Deviations from the month's mean, as far as it was known, in units of their spread.
means = np.array([values[:known][months[:known] == month].mean() for month in range(12)])
spread = (values[:known] - means[months[:known]]).std()
series = (values - means[months]) / spread
angle = 2 * np.pi * months / 12
features = np.stack([series, np.sin(angle), np.cos(angle)], 1).astype(np.float32)

begins = np.arange(len(values) - PAST - AHEAD + 1)
inputs = np.stack([features[begin : begin + PAST] for begin in begins])
targets = np.stack([series[begin + PAST : begin + PAST + AHEAD] for begin in begins])
targets = targets.astype(np.float32)
is_test = begins + PAST >= known
is_training = begins + PAST + AHEAD <= known

ms.set_seed(options.seed)
ds.config.set_seed(options.seed)
training = ds.NumpySlicesDataset(
    (inputs[is_training], targets[is_training]), ["x", "y"], shuffle=True
).batch(32)
network = Forecaster()
steps = training.get_dataset_size() * options.epochs
optimizer = nn.Adam(network.trainable_params(), nn.CosineDecayLR(0.0, 0.005, steps))
train = ms.train.Model(network, nn.MSELoss(), optimizer)
train.train(options.epochs, training)

forecast = train.predict(Tensor(inputs[is_test])).asnumpy() * spread
places = begins[is_test, None] + PAST + np.arange(AHEAD)
errors = forecast + means[months[places]] - values[places]
naive = values[places - 12] - values[places]
print(
    json.dumps(
        {
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "seasonal_naive_rmse": float(np.sqrt(np.mean(naive**2))),
            "months_ahead": AHEAD,
            "epochs": options.epochs,
            "parameters": sum(int(ops.size(p)) for p in network.trainable_params()),
        }
    )
)
