"""Elementary functions in float32: time an element on one thread, and the largest error."""

import dataclasses
import math
import sys
from collections.abc import Callable

import numpy as np
from sides import OUR_CPP, Commands, alternate, environment, running

COUNT = 16384  # elements, on one thread; a call includes recording, look-up and launch


def erf(x: np.ndarray) -> np.ndarray:
    return np.frompyfunc(math.erf, 1, 1)(x).astype(np.float64)


# Evaluated in float64, far more exactly than a unit in the last place of float32.
REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": erf,
    "sin": np.sin,
}


def float32_samples() -> np.ndarray:
    """Every exponent and sign with evenly spread significands, and densely from -12 to 12."""
    everywhere = np.arange(0, 2**32, 8191, dtype=np.uint64).astype(np.uint32).view(np.float32)
    everywhere = everywhere[np.isfinite(everywhere)]
    return np.concatenate([everywhere, np.linspace(-12, 12, 400_003, dtype=np.float32)])


def errors(name: str) -> tuple[float, float]:
    """The largest error in units in the last place, and the largest absolute one."""
    sys.path.insert(0, environment()["PYTHONPATH"])
    import lamella.mindspore as ms

    x = float32_samples()
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
        rounded = exact.astype(np.float32)
        result = getattr(ms.ops, name)(ms.Tensor(x)).asnumpy()
        finite = np.isfinite(rounded)
        assert np.array_equal(result[~finite], rounded[~finite], equal_nan=True), name
        error = np.abs(result.astype(np.float64) - exact)[finite]
        unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float((error / unit).max()), float(error.max())


@dataclasses.dataclass(frozen=True)
class Functions:
    """A table of functions."""

    def measure(self, rounds: int, peers: Commands) -> str:
        lines = [
            "| function | ns an element: median / min | largest error, ulp | largest absolute |",
            "|---|---|---|---|",
        ]
        with running(OUR_CPP, threads=1) as sides:
            for name in REFERENCES:
                figure = alternate(sides, f"{name}_{COUNT}", rounds)["Lamella"]
                ulp, absolute = errors(name)
                lines.append(
                    f"| {name} | {figure.scaled(1e6 / COUNT)} | {ulp:.2f} | {absolute:.1g} |"
                )
        return "\n".join(lines)
