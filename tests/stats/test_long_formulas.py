"""Formulas of hundreds of terms are read, and mean what short ones mean."""

import sys

import pytest

from hedgerow.data import Column, Schema
from hedgerow.errors import FormulaInvalid
from hedgerow.stats import formula as formulas
from hedgerow.stats.design import Design

N = 600
NAMES = [f"x{i}" for i in range(N)]
NUMBERS = [Column(name, "number", low=0, high=2) for name in NAMES]
OTHERS = [Column("g", "category", levels=("a", "b")), Column("a - b", "number"), Column("y", "binary", role="target")]
SCHEMA = Schema((*NUMBERS, *OTHERS))
FEW = Schema((*NUMBERS[:8], *OTHERS))


@pytest.mark.parametrize(
    ("right", "size"),
    [
        (" + ".join(NAMES), N + 1),
        ("-1 + (" + " + ".join(NAMES[1:]) + ") + g", N + 1),
        (" + ".join(f"log({name} + 1)" for name in NAMES), N + 1),
        (". " + "".join(f" - {name}" for name in NAMES[1:]), 4),
    ],
    ids=["names", "brackets", "functions", "minus"],
)
@pytest.mark.slow
def test_six_hundred_terms_are_read(right, size):
    assert Design.of(f"y ~ {right}", SCHEMA).size == size


@pytest.mark.parametrize(
    "right",
    [
        "x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7",
        "0 + x0 + x1 + x2 + x3 + x4 + g",
        "-1 + x3 + x1 + x0 + x2",
        "x0 + x1 - 1 + x2 + x3 + x4",
        ". - x1 - x2 - x3 - g - `a - b`",
        "(x0 + x1 + x2 + x3 + x4):C(g, Treatment('b')) + x5 + x6 + x7",
        "(x0 + x1 + x2 + x3)**2 - x0:x1 - x1:x2 - x0 - x3",
        "x0*g + I(x1 - x2 + x3) + log(x4 + 1) + `a - b` + x5 + x6",
        "(x0 + x1 + (x2 + x3 + (x4 + x5 + x6))) + x7",
        "x0 + x3 + 1 + x1 + . + x2",
    ],
)
def test_a_long_sum_means_what_its_short_form_means(right, monkeypatch):
    expected = Design.of(f"y ~ {right}", FEW).names
    monkeypatch.setattr(formulas, "TOGETHER", 2)
    assert formulas._grouped(f"y ~ {right}") != f"y ~ {right}"
    assert Design.of(f"y ~ {right}", FEW).names == expected


@pytest.mark.parametrize("right", ["x0 + + ", "x0 + (x1 + x2", "x0) + x1", "x0 + 'x1", "x0 | x1 ~ x2"])
def test_what_is_no_formula_is_refused_as_before(right, monkeypatch):
    monkeypatch.setattr(formulas, "TOGETHER", 2)
    with pytest.raises(FormulaInvalid):
        Design.of(f"y ~ {right}", FEW)


def test_a_sum_nested_in_a_function_is_refused_with_a_remedy():
    raised = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own; some test before may have raised it
    try:
        with pytest.raises(FormulaInvalid, match=r"nested too deep.*\n.*outside of functions"):
            Design.of(f"y ~ I({' + '.join(NAMES)})", SCHEMA)
    finally:
        sys.setrecursionlimit(raised)
