"""What a training step needs in memory beside parameters, state and batch: planned and measured."""

import dataclasses
import json
import subprocess

from sides import OUR_CPP, Commands, environment

CASES = ["lenet_step", "mlp_step", "lstm_step", "transformer_step"]
MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Memory:
    """A table of steps: the plan against what was measured, the least there is, and window 1."""

    def measure(self, rounds: int, peers: Commands) -> str:
        lines = [
            "| step, MiB | planned | measured | largest sum alive at once | planned / that "
            "| every operation by itself |",
            "|---|---|---|---|---|---|",
        ]
        for case in CASES:
            # A process each: what one case keeps in the pool is not the next one's.
            output = subprocess.run(
                [*OUR_CPP["Lamella"], "--memory", case],
                capture_output=True,
                text=True,
                check=True,
                env=environment(),
            ).stdout
            figures = json.loads(output)
            cells = [f"{figures[key] / MIB:.3f}" for key in ("planned", "measured", "least")]
            share = f"{figures['planned'] / figures['least']:.3f}"
            lines.append(
                f"| {case} | {' | '.join(cells)} | {share} | {figures['window_1'] / MIB:.3f} |"
            )
        return "\n".join(lines)
