"""Every operator in every dtype against its reference; gradients against differences."""

import collections

import pytest

import lamella

from . import cases

ROWS = {row["name"]: row for row in lamella.operators()}
# Without a meaning of their own to be compared with: what they do, a function given to them says.
INTERNAL = {"with_custom_gradient"} | {n for n, row in ROWS.items() if row["lowering"] == "control"}
# Whose gradient is not the slope of their values.
NO_SLOPE = {"stop_gradient"} | INTERNAL
BY_DTYPE = sorted(
    {(case.operator, case.dtype) for row in ROWS.values() for case in cases.cases_of(row)}
)


@pytest.mark.parametrize(("name", "dtype"), BY_DTYPE)
def test_values(name, dtype):
    row = ROWS[name]
    outcomes = collections.Counter()
    for case in cases.cases_of(row):
        if case.dtype != dtype:
            continue
        try:
            outcomes[cases.check(row, case)] += 1
        except Exception as error:
            error.add_note(f"{case}: {row['samples'][case.sample]}")
            raise
    assert outcomes["checked"] + outcomes["not for bools"] >= len(row["samples"])


@pytest.mark.parametrize(
    "name", sorted(n for n, row in ROWS.items() if row["has_gradient"] and n not in NO_SLOPE)
)
def test_gradients(name):
    row = ROWS[name]
    for sample in range(len(row["samples"])):
        try:
            cases.check_gradient(row, sample)
        except Exception as error:
            error.add_note(f"{name}: {row['samples'][sample]}")
            raise


def check_all(row, dtype):
    for case in cases.cases_of(row):
        if case.dtype == dtype:
            cases.check(row, case)


def test_every_operator_has_samples_and_a_reference():
    for name, row in ROWS.items():
        if name not in INTERNAL:
            assert row["samples"], name
            assert row["reference"], name


def test_each_case_is_counted_once():
    made = [case for row in ROWS.values() for case in cases.cases_of(row)]
    assert len(made) == len(set(made)) > 4000
    assert {case.operator for case in made} == set(ROWS) - INTERNAL


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("tanh", "np.tanh(x) * (1 + 1e-5)"),
        ("softmax", "softmax(x, axis) + 1e-5"),
        ("sum", "np.sum(x, axis=axes(axis), keepdims=not keepdims)"),
        ("relu", "np.where(x > 0, x, 0)"),  # NaN would become 0
        (
            "cross_entropy",
            "cross_entropy(logits, labels, None, axis, ignore_index, 0.2, reduction)",
        ),
    ],
)
def test_a_wrong_formula_is_caught(operator, wrong):
    row = {**ROWS[operator], "reference": wrong}
    with pytest.raises(cases.MismatchError):
        check_all(row, "float32")


def test_a_wrong_gradient_is_caught(monkeypatch):
    # The gradient of cos beside the values of sin.
    run = cases.run

    def mixed(row, arguments):
        return run(ROWS["sin" if mixed.values else "cos"], arguments)

    mixed.values = False
    original = lamella._native.differentiate

    def differentiate(function, wrt):
        result = original(function, wrt)
        mixed.values = True
        return result

    monkeypatch.setattr(cases, "run", mixed)
    monkeypatch.setattr(lamella._native, "differentiate", differentiate)
    with pytest.raises(cases.MismatchError):
        cases.check_gradient(ROWS["cos"], 0)
