"""What a user waits for before training runs: the import, and the first step of LeNet."""

import dataclasses
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

from sides import OUR_PYTHON, PEERS_PYTHON, PYTHON, TRAINERS, Commands, Figure, environment

IMPORTS = {
    "Lamella": [str(PYTHON), "lamella.mindspore"],
    "PyTorch eager": [str(PEERS_PYTHON), "torch"],
    "JAX jit": [str(PEERS_PYTHON), "jax"],
}
CASE = "lenet_step"
CACHES = ("LAMELLA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
# JAX keeps only what took a second to compile, unless it is told to keep all.
KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def seconds_to_first_line(command: Sequence[str], folder: str) -> float:
    """From the start of the program to its first line of output, its caches being in `folder`."""
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**dict.fromkeys(CACHES, folder), **KEEP_ALL),
    ) as process:
        if not process.stdout.readline():
            _, said = process.communicate()
            raise RuntimeError(f"{' '.join(command)} printed nothing:\n{said.decode()}")
        seconds = time.perf_counter() - began
        process.communicate()
        return seconds


def figure(seconds: Sequence[float]) -> Figure:
    return Figure(statistics.median(seconds), min(seconds))


@dataclasses.dataclass(frozen=True)
class Start:
    """A table of sides: import, then the first step with empty and with filled caches, from the
    start of the process less the start and import alone."""

    def measure(self, rounds: int, peers: Commands) -> str:
        trainers = {name: command for name, command in peers.items() if name in TRAINERS}
        sides: Mapping[str, Sequence[str]] = {"Lamella": OUR_PYTHON["Lamella"], **trainers}
        names = list(sides)
        times: dict[str, dict[str, list[float]]] = {
            name: {"import": [], "cold": [], "warm": []} for name in names
        }
        for _ in range(rounds):
            for name in names:
                python, module = IMPORTS[name.replace("compiled", "eager")]
                first = [*sides[name], "--first", CASE]
                with tempfile.TemporaryDirectory() as folder:
                    bare = seconds_to_first_line([python, "-c", "print(flush=True)"], folder)
                    imported = f"import {module}; print(flush=True)"
                    whole = seconds_to_first_line([python, "-c", imported], folder)
                    times[name]["import"].append(whole - bare)
                    for state in ("cold", "warm"):
                        times[name][state].append(seconds_to_first_line(first, folder) - whole)
        lines = [
            "| s: median / min | import | first LeNet step, caches empty | caches filled |",
            "|---|---|---|---|",
        ]
        for name in names:
            cells = [str(figure(times[name][column])) for column in ("import", "cold", "warm")]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(lines)
