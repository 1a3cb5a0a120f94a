"""Turns an operator's declaration into cases, runs them, and says what is wrong with results."""

import dataclasses
import inspect
import warnings

import numpy as np

import lamella
from lamella import Tensor

from . import reference, samples

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", *FLOATS)
HELPERS = {name: value for name, value in vars(reference).items() if not name.startswith("_")} | {
    "np": np
}
GENERATORS = {name: value for name, value in vars(samples).items() if not name.startswith("_")} | {
    "np": np,
    "softmax": lambda x, axis: reference.softmax(x, axis).view(samples.Data),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One call: an operator, one of its samples, a dtype and the kind of arguments."""

    operator: str
    sample: int
    dtype: str
    mode: str = "ordinary"

    def __str__(self):
        return f"{self.operator}-{self.sample}-{self.dtype}-{self.mode}"


class MismatchError(AssertionError):
    """A result that is not what the reference says."""


def data_dtypes(row):
    """The dtypes to run an operator with: those that its data operands accept."""
    accepts = row["accepts"]
    if not accepts:
        return ["float32"]
    # Operands for indices and conditions keep their own dtypes; data is the widest choice.
    return max(accepts, key=len)


def cases_of(row):
    dtypes = data_dtypes(row)
    for sample in range(len(row["samples"])):
        for dtype in dtypes:
            for mode in samples.MODES:
                if mode == "special" and dtype not in FLOATS:
                    continue
                yield Case(row["name"], sample, dtype, mode)


class Call:
    """The arguments of a case, as Lamella takes them and as the reference does."""

    def __init__(self, row, case, example=0):
        self.row, self.case = row, case
        with samples.mode(case.mode, example):
            text = row["samples"][case.sample]
            given = eval(f"_bind({text})", {"_bind": self._bind, **GENERATORS})
        self.arguments = given

    def _bind(self, *args, **kwargs):
        parameters = []
        for parameter in self.row["parameters"]:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            default = parameter.get("default", inspect.Parameter.empty)
            parameters.append(inspect.Parameter(parameter["name"], kind, default=default))
        try:
            bound = inspect.Signature(parameters).bind(*args, **kwargs)
        except ValueError:  # a parameter without a default behind one that has one
            parameters = [p.replace(default=inspect.Parameter.empty) for p in parameters]
            bound = inspect.Signature(parameters).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def operand_dtype(self, index):
        """The dtype that data takes as operand number `index`."""
        accepts = self.row["accepts"]
        accepted = accepts[min(index, len(accepts) - 1)]
        return self.case.dtype if self.case.dtype in accepted else "float32"

    def operands(self):
        """Pairs of name and value of the operands that are given."""
        for parameter in self.row["parameters"]:
            if "tensor" in parameter["kind"] and self.arguments[parameter["name"]] is not None:
                yield parameter["name"], self.arguments[parameter["name"]]

    def for_lamella(self, wrap=lambda tensor: tensor):
        """The arguments by name; every data operand goes through `wrap`."""
        made = dict(self.arguments)
        for index, (name, value) in enumerate(self.operands()):
            made[name] = self._tensor(index, value, wrap)
        return made

    def _tensor(self, index, value, wrap):
        if isinstance(value, list):
            return [self._tensor(index, item, wrap) for item in value]
        if isinstance(value, samples.Data):
            dtype = self.operand_dtype(index)
            return wrap(tensor_of(samples.rounded(np.asarray(value), dtype), dtype))
        if isinstance(value, np.ndarray):
            return Tensor(value)
        return value

    def for_reference(self):
        made = {}
        for name, value in self.arguments.items():
            made[name + "_" if name in HELPERS else name] = value
        for index, (name, value) in enumerate(self.operands()):
            made[name + "_" if name in HELPERS else name] = self._exact(index, value)
        if "dtype" in made and not isinstance(made["dtype"], str):
            made["dtype"] = made["dtype"].name
        return made

    def _exact(self, index, value):
        if isinstance(value, list):
            return [self._exact(index, item) for item in value]
        if isinstance(value, samples.Data):
            return samples.rounded(np.asarray(value), self.operand_dtype(index))
        if isinstance(value, float):  # numbers take the dtype of what they stand beside
            beside = self.row["promotion"] != "none" and self.case.dtype in FLOATS
            return float(
                samples.round_float(np.float64(value), self.case.dtype if beside else "float32")
            )
        return value

    def expected(self):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(self.row["reference"], {**HELPERS, **self.for_reference()})
        return result if isinstance(result, list) else [result]


def tensor_of(array, dtype):
    array = np.asarray(array)
    if dtype == "bfloat16":
        return lamella.call("cast", Tensor(array.astype(np.float32)), lamella._native.bfloat16)
    return Tensor(np.ascontiguousarray(array.astype(np.dtype(dtype))))


def run(row, arguments):
    result = getattr(lamella._native.operators_by_name, row["name"])(**arguments)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def array_of(tensor):
    """The elements, bfloat16 as float64."""
    if tensor.dtype.name == "bfloat16":
        tensor = lamella.call("cast", tensor, lamella._native.float64)
    return np.array(tensor.asnumpy())


def bytes_of(tensors):
    """The elements' bits; where NaNs meet, the sign and payload that stay are anyone's."""
    arrays = [array_of(tensor) for tensor in tensors]
    return [
        np.where(array != array, array.dtype.type(np.nan), array).tobytes()
        if tensor.dtype.name in FLOATS
        else array.tobytes()
        for tensor, array in zip(tensors, arrays, strict=True)
    ]


def compare(row, tensor, expected):
    """Raises MismatchError unless the tensor holds the expected elements."""
    given, dtype = array_of(tensor), tensor.dtype.name
    expected = np.asarray(expected)
    if given.shape != expected.shape:
        raise MismatchError(f"shape {given.shape}, expected {expected.shape}")
    if dtype not in FLOATS:
        if dtype == "bool":
            expected = expected.astype(bool)
        elif np.issubdtype(expected.dtype, np.floating):  # what is not a number becomes 0
            expected = np.trunc(np.nan_to_num(expected, nan=0))
        with np.errstate(all="ignore"):
            wrong = given != expected.astype(given.dtype)
    else:
        expected = np.asarray(expected, np.float64)
        nearest = samples.round_float(expected, dtype)
        given = given.astype(np.float64)
        same = (given == nearest) | (np.isnan(given) & np.isnan(nearest))
        # What adds up many terms is compared at the size of the largest result.
        magnitude = np.abs(nearest)
        if row["lowering"] in ("kernel", "composite", "reduction") and row["ulp"] > 0.5:
            finite = np.where(np.isfinite(magnitude), magnitude, 0)
            magnitude = np.maximum(magnitude, np.max(finite, initial=0))
            magnitude = np.maximum(magnitude, 1e-3)
        with np.errstate(all="ignore"):
            allowed = (row["ulp"] + 0.5) * samples.spacing(magnitude, dtype)
            close = np.abs(given - expected) <= allowed if row["ulp"] >= 1 else False
            # Near the largest number, one side may already be infinite.
        wrong = ~(same | close)
    if np.any(wrong):
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise MismatchError(
            f"{int(np.sum(wrong))} of {wrong.size} elements differ; at {place} {given[place]!r}, "
            f"expected {expected[place]!r} ({dtype})"
        )


def strided(tensor):
    """The same elements as a view of every second element of a larger tensor."""
    if len(tensor.shape) == 0:
        return tensor
    doubled = lamella.call("repeat_interleave", tensor, 2, -1)
    size = tensor.shape[-1]
    return lamella.call("narrow", doubled, 0, -1, (size,), 2)


def check(row, case):
    """Runs a case in every way; raises MismatchError, or the error of a call that should work."""
    call = Call(row, case)
    refusals = (ValueError, IndexError, TypeError, NotImplementedError, ZeroDivisionError)
    ordinary = case.mode == "ordinary"
    try:
        tensors = run(row, call.for_lamella())
        whole = bytes_of(tensors)
    except refusals as error:
        if case.dtype == "bool" and isinstance(error, TypeError):
            return "not for bools"
        if ordinary:
            raise
        return "refused"
    elementwise = row["lowering"] == "tile"
    comparable = case.mode != "special" or elementwise or row["ulp"] == 0
    if comparable:
        try:
            expected = call.expected()
        except refusals:
            if ordinary:
                raise
            expected = None
        if expected is not None:
            if len(expected) != len(tensors):
                raise MismatchError(f"{len(tensors)} results, expected {len(expected)}")
            for tensor, value in zip(tensors, expected, strict=True):
                compare(row, tensor, value)
    lamella.set_window(1)
    try:
        if bytes_of(run(row, call.for_lamella())) != whole:
            raise MismatchError("the result differs with a window of one operation")
    finally:
        lamella.set_window(0)
    if bytes_of(run(row, call.for_lamella(strided))) != whole:
        raise MismatchError("the result differs when operands are strided views")
    return "checked"


def check_gradient(row, sample):
    """Compares gradients with central differences in float64, each result element weighted."""
    call = Call(row, Case(row["name"], sample, "float64"))
    arguments = call.for_lamella()
    wanted = {}
    for index, (name, value) in enumerate(call.operands()):
        is_data = isinstance(value, samples.Data) and value.size > 0
        if is_data and call.operand_dtype(index) == "float64":
            wanted[name] = arguments[name]
    if not wanted:
        return 0
    weights = [
        np.random.default_rng(3).standard_normal(tuple(tensor.shape))
        for tensor in run(row, arguments)
    ]

    def weighted(at):
        total = 0
        for tensor, weight in zip(run(row, at), weights, strict=True):
            if tensor.dtype.name == "float64":
                total = total + lamella.call("sum", tensor * Tensor(weight))
        return total

    if isinstance(weighted(arguments), int):
        return 0
    _, gradients = lamella._native.differentiate(
        lambda: (None, weighted(arguments)), list(wanted.values())
    )
    checked = 0
    for (name, tensor), gradient in zip(wanted.items(), gradients, strict=True):
        origin, analytic = array_of(tensor), array_of(gradient)
        numeric = np.empty(origin.shape)
        for place in np.ndindex(origin.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = origin.copy()
                moved[place] += step
                sides.append(weighted({**arguments, name: Tensor(moved)}).item())
            numeric[place] = (sides[0] - sides[1]) / 2e-6
        scale = np.maximum(1, np.max(np.abs(numeric), initial=0))
        if not np.allclose(analytic, numeric, rtol=2e-5, atol=2e-6 * scale):
            raise MismatchError(f"the gradient in {name} is\n{analytic}\nexpected\n{numeric}")
        checked += 1
    return checked
