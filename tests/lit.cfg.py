"""Text in, text out: each .ir file (a graph) and .tile file (a tile program) is a test.

Its RUN lines name the commands; FileCheck compares what they print with the CHECK lines.
"""

import os
import pathlib

import lit.formats

root = pathlib.Path(__file__).resolve().parent.parent
preset = lit_config.params.get("preset", "release")
build = root / "build" / preset

config.name = "text"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ir", ".tile"]
config.test_source_root = str(root / "tests")
config.test_exec_root = str(build / "tests" / "text")

# The lamella command of this build; FileCheck and not of LLVM.
config.environment["PATH"] = os.pathsep.join(
    [str(build / "cli"), "/usr/lib/llvm-19/bin", config.environment["PATH"]]
)
# The harsher runs set these: tests see what the caller of lit set.
for name in ("LAMELLA_WINDOW", "LAMELLA_GUARD", "LAMELLA_NUM_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
