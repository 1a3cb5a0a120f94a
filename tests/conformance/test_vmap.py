"""Every operator over a batch at once against the same operator for one example after another."""

import itertools

import numpy as np
import pytest
from lamella.vectorize import vmap

import lamella
from lamella import Tensor

from . import cases, samples
from .test_operators import INTERNAL, ROWS

EXAMPLES = 3
# Whose bits depend on the batch: weights of each example make groups of one convolution, and a bias
# of each example is added to a product that was rounded already.
ROUNDED_OTHERWISE = {
    "affine",
    "conv1d",
    "conv2d",
    "conv3d",
    "convolution",
    "convolution_backward_data",
    "convolution_backward_weights",
    "convolution_transpose",
    "dense",
}


def dtypes_of(row):
    """One that the operator accepts, and one that composites compute wider."""
    accepted = cases.data_dtypes(row)
    first = "float32" if "float32" in accepted else accepted[0]
    wider = "bfloat16" in accepted and row["lowering"] == "composite"
    return [first, "bfloat16"] if wider else [first]


# Drawn from numbers: they have no operand that could be batched.
WITHOUT_OPERANDS = {
    name
    for name, row in ROWS.items()
    if name not in INTERNAL
    and not any(
        isinstance(value, (np.ndarray, list))
        for sample in range(len(row["samples"]))
        for _, value in cases.Call(row, cases.Case(name, sample, "float32")).operands()
    )
}
BY_DTYPE = [
    (name, dtype)
    for name, row in sorted(ROWS.items())
    if name not in INTERNAL | WITHOUT_OPERANDS
    for dtype in dtypes_of(row)
]


def varied(value, example):
    """Elements for one example: data is made anew, what is written out starts at another row."""
    if isinstance(value, samples.Data) or not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return np.roll(value, example, 0)


class Batch:
    """The calls for a number of examples, and their tensors on top of each other."""

    def __init__(self, row, case):
        self.row = row
        self.calls = [cases.Call(row, case, example) for example in range(EXAMPLES)]
        for example, call in enumerate(self.calls):
            for name, value in call.operands():
                if not isinstance(value, list):
                    call.arguments[name] = varied(value, example)
        self.arguments = [call.for_lamella() for call in self.calls]
        self.places = [
            (name, None if not isinstance(value, list) else number)
            for name, value in self.calls[0].operands()
            for number, item in enumerate(value if isinstance(value, list) else [value])
            if isinstance(item, np.ndarray)
        ]

    def tensor(self, example, place):
        name, number = place
        value = self.arguments[example][name]
        return value if number is None else value[number]

    def arguments_with(self, places, tensors):
        """The first example's arguments with others in some places."""
        made = {k: list(v) if isinstance(v, list) else v for k, v in self.arguments[0].items()}
        for (name, number), tensor in zip(places, tensors, strict=True):
            if number is None:
                made[name] = tensor
            else:
                made[name][number] = tensor
        return made

    def check(self, places, in_axes, out_axes):
        columns = [[self.tensor(e, place) for e in range(EXAMPLES)] for place in places]
        loop = [
            cases.run(self.row, self.arguments_with(places, examples))
            for examples in zip(*columns, strict=True)
        ]
        stacked = [
            lamella.call("stack", column, axis)
            for column, axis in zip(columns, in_axes, strict=True)
        ]
        batched = vmap(
            lambda *tensors: cases.run(self.row, self.arguments_with(places, tensors)),
            tuple(in_axes),
            out_axes,
        )(*stacked)
        assert len(batched) == len(loop[0])
        for number, tensor in enumerate(batched):
            rows = np.moveaxis(cases.array_of(tensor), out_axes, 0)
            assert len(rows) == EXAMPLES
            for example, row in enumerate(rows):
                expected = loop[example][number]
                assert tensor.dtype == expected.dtype
                self.compare(row, cases.array_of(expected), expected.dtype.name, example, places)

    def compare(self, given, expected, dtype, example, places):
        if given.shape == expected.shape and given.tobytes() == expected.tobytes():
            return
        case = f"example {example}, batched {places}"
        assert given.shape == expected.shape, case
        assert self.row["name"] in ROUNDED_OTHERWISE, f"{case}: {given} is not {expected}"
        # Both are within the reference's tolerance of the truth.
        given, expected = given.astype(np.float64), expected.astype(np.float64)
        magnitude = np.abs(expected)
        magnitude = np.maximum(magnitude, np.max(np.nan_to_num(magnitude), initial=1e-3))
        allowed = (2 * self.row["ulp"] + 1) * samples.spacing(magnitude, dtype)
        close = (np.abs(given - expected) <= allowed) | (given == expected)
        close |= np.isnan(given) & np.isnan(expected)
        assert np.all(close), f"{case}: {given} is not {expected}"


@pytest.mark.parametrize(("name", "dtype"), BY_DTYPE)
def test_values(name, dtype):
    row = ROWS[name]
    for sample, text in enumerate(row["samples"]):
        try:
            batch = Batch(row, cases.Case(name, sample, dtype))
            if not batch.places:
                continue
            choices = [batch.places]
            if len(batch.places) > 1 and dtype != "bfloat16":
                choices += [[place] for place in batch.places]
            for turn, places in zip(itertools.count(), choices, strict=False):
                # Behind the last axis and in front of the first in turn.
                in_axes = [-1 if (turn + i) % 2 else 0 for i in range(len(places))]
                batch.check(places, in_axes, -1 if turn % 2 else 0)
        except Exception as error:
            error.add_note(f"{name}-{sample}-{dtype}: {text}")
            raise


def weighted_sum(row, arguments):
    """Of all float results, or None."""
    total = None
    for tensor in cases.run(row, arguments):
        if tensor.dtype.name == "float32":
            weight = np.random.default_rng(3).standard_normal(tuple(tensor.shape))
            term = lamella.call("sum", tensor * Tensor(weight.astype(np.float32)))
            total = term if total is None else total + term
    return total


@pytest.mark.parametrize(
    "name", sorted({name for name, dtype in BY_DTYPE if ROWS[name]["has_gradient"]})
)
def test_gradients(name):
    row = ROWS[name]
    for sample, text in enumerate(row["samples"]):
        batch = Batch(row, cases.Case(name, sample, "float32"))
        columns = [[batch.tensor(e, place) for e in range(EXAMPLES)] for place in batch.places]
        floats = [i for i, c in enumerate(columns) if c[0].dtype.name == "float32"]
        if not floats or weighted_sum(row, batch.arguments[0]) is None:
            continue

        def total(*tensors, batch=batch):
            return weighted_sum(row, batch.arguments_with(batch.places, tensors))

        def gradients(*tensors, total=total, floats=floats):
            wrt = [tensors[i] for i in floats]
            return lamella._native.differentiate(lambda: (None, total(*tensors)), wrt)[1]

        try:
            stacked = [lamella.call("stack", column, 0) for column in columns]
            loop = [gradients(*examples) for examples in zip(*columns, strict=True)]
            inside = vmap(gradients)(*stacked)
            _, outside = lamella._native.differentiate(
                lambda: (None, lamella.call("sum", vmap(total)(*stacked))),  # noqa: B023
                [stacked[i] for i in floats],
            )
            for number, place in enumerate(floats):
                expected = np.stack([cases.array_of(one[number]) for one in loop])
                scale = np.max(np.abs(expected), initial=1)
                for kind, given in (("inside", inside[number]), ("outside", outside[number])):
                    np.testing.assert_allclose(
                        cases.array_of(given),
                        expected,
                        rtol=1e-4,
                        atol=1e-5 * scale,
                        err_msg=f"grad {kind} of vmap, {batch.places[place]}",
                    )
        except Exception as error:
            error.add_note(f"{name}-{sample}: {text}")
            raise


def test_no_operator_is_left_out():
    assert {name for name, _ in BY_DTYPE} | WITHOUT_OPERANDS | INTERNAL == set(ROWS)
    assert all(
        name.startswith("random_")
        for name in WITHOUT_OPERANDS - {"arange", "element_numbers", "eye", "full", "linspace"}
    )


def test_a_batch_of_none_and_of_one():
    for size in (0, 1):
        x = Tensor(np.ones((size, 3, 4), np.float32))
        assert vmap(lambda x: lamella.call("softmax", x))(x).shape == (size, 3, 4)
