"""The entry points say clearly what they cannot do, instead of pretending."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def test_an_unknown_example_is_an_error_that_names_it():
    result = subprocess.run(
        [ROOT / "tools" / "run_example", "no_such_example"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "no example 'no_such_example'" in result.stderr


def test_plain_make_explains_the_targets():
    result = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True)
    for target in ("run", "test", "check", "docs", "bench", "bench-peers", "format", "clean"):
        assert f"  make {target} " in result.stdout
