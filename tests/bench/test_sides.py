"""The benchmarks alternate their sides, report medians and ratios, and keep other sections."""

import itertools
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import comparison
import measure
import run
import sides

# A side that answers with growing times, and writes each request into a file shared by all sides.
SIDE = """
import json, sys
name, start, log = sys.argv[1], float(sys.argv[2]), sys.argv[3]
for line in sys.stdin:
    with open(log, "a") as file:
        print(name, file=file)
    if line.strip() == "case":
        print(json.dumps({"name": "case", "ms": start}), flush=True)
        start += 1
    else:
        print(json.dumps({"name": line.strip(), "error": "no such case"}), flush=True)
"""


@pytest.fixture
def commands(tmp_path):
    script = tmp_path / "side.py"
    script.write_text(SIDE)
    log = tmp_path / "log"

    def of(**starts: float) -> dict[str, list[str]]:
        return {
            name: [sys.executable, str(script), name, str(start), str(log)]
            for name, start in starts.items()
        }

    return of


def test_sides_are_measured_in_turn_and_the_first_answer_is_warm_up(commands, tmp_path):
    with sides.running(commands(one=1, two=10)) as running:
        figures = sides.alternate(running, "case", rounds=5)
    assert figures["one"] == sides.Figure(median=4, minimum=2)
    assert figures["two"] == sides.Figure(median=13, minimum=11)
    # Each had started up before the next was started.
    assert (tmp_path / "log").read_text().split() == ["one", "two"] * (1 + 6)


def test_a_case_that_was_slow_to_begin_with_is_measured_over_many_calls():
    calls = itertools.count()
    warm = measure.WarmCase(lambda: lambda: time.sleep(0.2 if next(calls) < 5 else 0))
    assert warm.repetitions == 1
    warm.milliseconds()
    assert warm.milliseconds() < 1
    assert warm.repetitions > 100


def test_a_case_that_a_side_lacks_is_left_out(commands):
    with sides.running(commands(one=1)) as running:
        assert sides.alternate(running, "another case") == {}


def test_too_few_rounds_are_refused():
    with pytest.raises(ValueError, match="5 or more"):
        sides.alternate({}, "case", rounds=4)


def test_each_side_can_have_a_case_of_its_own(commands, tmp_path):
    with sides.running(commands(one=1, two=10)) as running:
        figures = sides.alternate(running, {"one": "case", "two": "another case"})
    assert list(figures) == ["one"]


def test_the_ratio_is_of_our_fastest_side_to_the_fastest_peer():
    figures = {
        "Lamella": sides.Figure(2, 1),
        "Lamella jit": sides.Figure(4, 4),
        "PyTorch eager": sides.Figure(8, 8),
        "JAX jit": sides.Figure(5, 5),
    }
    calls = comparison.Comparison(["case"], sides.OUR_PYTHON)
    assert calls.ratio(figures) == 2.5
    table = calls.table({"case": figures}, list(figures))
    assert "| case | 2 / 1 | 4 / 4 | 8 / 8 | 5 / 5 | 2.50 |" in table


def test_writing_a_section_replaces_it_and_keeps_the_others(tmp_path):
    path = tmp_path / "RESULTS.md"
    for title, body in (("A", "first"), ("B", "second"), ("A", "third")):
        run.write_section(path, title, body)
    assert path.read_text() == "# Measured\n\n## A\n\nthird\n\n## B\n\nsecond\n"
