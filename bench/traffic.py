"""How close kernels that only move memory come to a copy of as many bytes, measured in turn."""

import dataclasses

from sides import OUR_CPP, Commands, alternate, running

MIB = 2**20

# Bytes that must move: each operand read once and each result written once. Forward and backward
# read x and the cotangent and write the result and the gradient; cross entropy has no cotangent
# and no large result; Adam reads p, g, m, v and writes p, m, v. A footprint of 16 MiB stays in the
# last-level cache of most machines, one of 1 GiB nowhere.
BYTES = {
    "chain_2^21": 16 * MIB,
    "chain_2^27": 1024 * MIB,
    "softmax_1024x1024": 16 * MIB,
    "softmax_65536x1024": 1024 * MIB,
    "layer_norm_1024x1024": 16 * MIB,
    "layer_norm_65536x1024": 1024 * MIB,
    "cross_entropy_2048x1024": 16 * MIB,
    "cross_entropy_131072x1024": 1024 * MIB,
    "gelu_2^20": 16 * MIB,
    "gelu_2^26": 1024 * MIB,
    "adam_1x512x1024": 7 * 2 * MIB,
    "adam_70x512x1024": 7 * 140 * MIB,
}


@dataclasses.dataclass(frozen=True)
class Traffic:
    """A table of cases of ours with their share of the traffic of a copy."""

    def measure(self, rounds: int, peers: Commands) -> str:
        lines = [
            "| case | MiB moved | copy, ms: median / min | Lamella, ms: median / min | share |",
            "|---|---|---|---|---|",
        ]
        # Two processes of the same program, so that both stay warm while they take turns.
        command = OUR_CPP["Lamella"]
        with running({"copy": command, "kernel": command}) as sides:
            for case, bytes_moved in BYTES.items():
                copy = f"copy_{bytes_moved}"
                figures = alternate(sides, {"copy": copy, "kernel": case}, rounds)
                share = figures["copy"].median / figures["kernel"].median
                lines.append(
                    f"| {case} | {bytes_moved // MIB} | {figures['copy']} | {figures['kernel']} "
                    f"| {share:.0%} |"
                )
        return "\n".join(lines)
