"""Formulas that choose a few records are found, however they are spelt; ordinary ones are not."""

import numpy as np
import pytest

from hedgerow.data import Column, Schema
from hedgerow.stats.design import Design
from hedgerow.stats.selecting import MOST_PAIRS, few_chosen, terms_in

N = 200
RNG = np.random.default_rng(0)
COLUMNS = {
    "age": np.r_[RNG.uniform(20, 88, N - 3), 89, 89.5, 90],
    "dose": RNG.uniform(0, 1, N),
    "sick": (RNG.uniform(size=N) < 0.3) * 1.0,
    "rare": (np.arange(N) < 3) * 1.0,
    "lab": np.r_[[np.nan] * 3, np.zeros(N - 3)],
    "town": np.r_[np.zeros(N // 2, int), np.ones(N // 2 - 2, int), 2, 2],
}
SCHEMA = Schema(
    (
        Column("age", "number", low=20, high=90),
        Column("dose", "number", low=0, high=1),
        Column("sick", "binary"),
        Column("lab", "number", low=0, high=1, optional=True),
        Column("rare", "binary"),
        Column("town", "category", levels=("a", "b", "c")),
    )
)


def found(formula, offset=None, w=None):
    terms = tuple(terms_in({"spec": Design.of(formula, SCHEMA, offset=offset)}))
    return few_chosen(terms, COLUMNS, np.ones(N) if w is None else w, 5)


@pytest.mark.parametrize(
    "formula",
    [
        "dose ~ I((age >= 88.5) * sick)",
        "dose ~ I(age < 88.5)",
        "dose ~ I(1 + (age >= 88.5))",
        "dose ~ sick:I(age > 88.5)",
        "I(dose * (age > 88.5)) ~ sick",
        "dose ~ I((age >= 88.5) * dose + dose)",
        "dose ~ I(1 + (age >= 60) - (age >= 60.5))",
        "dose ~ I(age >= 60) + I(age >= 60.5)",
        "dose ~ I(age >= 20) + I(age < 88.5)",
        "dose ~ I(age >= 50) + I((age >= 50) * (age < 60)) + I((age >= 60) * (age < 88.5))",
        "dose ~ I(abs(age - 88.5) + age - 88.5)",
        "dose ~ I(((age - 88.5) ** 2) ** 0.5 + age)",
        "dose ~ sqrt((age - 88.5) ** 2)",
        "dose ~ I(exp(log((age - 88.5) ** 2) / 2))",
        "dose ~ rare:age",
        "dose ~ I(rare * age)",
        "dose ~ town:age",
        "dose ~ town:sick",
        "dose ~ I((age / 88) ** 4000)",
        "dose ~ rcs(age, [40, 88.5, 89, 89.5])",  # its last column is zero below 88.5
        "dose ~ rcs(age, [88.1, 88.2, 88.3, 88.4, 88.5]) + rcs(age, [40, 50, 60])",
        "dose ~ rcs(age, [40, 60.1, 80]) + rcs(age, [60.2, 60.3, 70]) + rcs(age, [60.0, 60.4, 75])",
        "dose ~ rcs(age, [88.4, 88.5, 100])",
        "dose ~ rcs(age, [88.4, 89.7, 89.8, 89.9])",
        "dose ~ bs(age, [88.5])",
        "dose ~ bs(age, [50, 50.1, 50.2], 1)",
        "dose ~ rare:rcs(age, [30, 50, 70])",
        "dose ~ missing(lab)",
        "dose ~ I(missing(lab) * age)",
    ],
)
def test_a_formula_that_chooses_three_records_is_found(formula):
    assert found(formula)


def test_an_offset_that_hides_all_records_but_three_is_found():
    assert found("dose ~ age", offset="1e9*(age<88.5)")
    assert not found("dose ~ age", offset="log(age)")


@pytest.mark.parametrize(
    "formula",
    [
        "dose ~ age + sick + town + rare",
        "dose ~ I(age > 60) + I(age > 75) + log(age) + I(age**2) + sqrt(age - 18) + exp((age - 60) / 10)",
        "dose ~ sick:age + age:dose + I(age > 50):I(dose > 0.5)",
        "I(age > 50) ~ dose",
        "dose ~ I(age > 100) + I(rare + dose)",
        "dose ~ sick*rcs(age, [35, 50, 70]) + rcs(age, [30, 50, 80])",
        "dose ~ sick + rcs(age, [21, 35, 60, 88.5])",
        "dose ~ bs(age, [40, 60]) + bs(dose, [0.3, 0.6]):sick",
    ],
)
def test_an_ordinary_formula_chooses_nothing(formula):
    assert not found(formula)


def test_records_without_a_weight_are_nobody():
    w = np.ones(N)
    w[-3:] = 0
    assert not found("dose ~ I(age >= 88.5)", w=w)
    w[-30:] = 0
    assert not found("dose ~ town:age", w=w)


SORTED = np.sort(COLUMNS["age"])
LOW, HIGH = (SORTED[99] + SORTED[100]) / 2, (SORTED[101] + SORTED[102]) / 2
PAIR = f"I(age >= {LOW}) + I(age + 0*dose >= {HIGH})"
"""Of two records just one of these comparisons holds."""
STEPS = np.sort(COLUMNS["dose"])[6:-6:6]
DECOYS = {
    "constant": [f"(dose > -{i})" for i in range(1, 66)],
    "never": [f"(dose > {i})" for i in range(2, 100)],
    "the same": [f"(dose > {0.5 + i * 1e-12})" for i in range(80)],
    "the rest": [f"({'-' * (i % 2)}dose > {'-' * (i % 2)}{0.5 + i * 1e-12})" for i in range(80)],
    "different": [f"(dose + {i}*0*age > {step})" for i, step in enumerate([*STEPS, *STEPS, *STEPS])],
    "signs": [f"abs(dose + {i})" for i in range(1, 66)],
}


@pytest.mark.parametrize("spelt", ["one term", "terms", "nested", "an interaction"])
@pytest.mark.parametrize("decoys", DECOYS)
def test_comparisons_that_say_nothing_push_no_pair_aside(decoys, spelt):
    asked = DECOYS[decoys]
    text = {
        "one term": f"I({' + '.join(asked)})",
        "terms": " + ".join(f"I({one})" for one in asked),
        "nested": f"{'I(' * 30}{' + '.join(asked)}{')' * 30}",
        "an interaction": f"I({' + '.join(asked)}):dose",
    }[spelt]
    assert found(f"sick ~ 0 + {PAIR}")
    assert found(f"sick ~ 0 + {text} + {PAIR}")


def test_comparisons_that_say_nothing_are_answered_by_themselves():
    for name in ("constant", "never", "the same", "the rest"):
        assert not found(f"sick ~ I({' + '.join(DECOYS[name])}) + I(age > 50)")


def test_more_different_comparisons_than_pairs_are_looked_at_are_refused():
    n = 1600
    ranks = np.arange(n) + 0.0
    columns = {"age": ranks, "dose": ranks, "sick": ranks % 2}

    def few(k):
        text = " + ".join(f"(dose > {6 * i + 6})" for i in range(k))
        spec = Design.of(
            f"sick ~ I({text})", Schema((Column("age", "number"), Column("dose", "number"), Column("sick", "binary")))
        )
        return few_chosen(tuple(terms_in({"spec": spec})), columns, np.ones(n), 5)

    assert not few(MOST_PAIRS)
    assert f"more than {MOST_PAIRS} different comparisons" in few(MOST_PAIRS + 1)


def test_pairs_are_counted_over_more_records_than_a_block():
    n = 20_000
    columns = {"age": np.arange(n) + 0.0, "dose": np.zeros(n), "sick": np.zeros(n)}
    for high, said in ((12_004, True), (12_005, False)):
        spec = Design.of(f"sick ~ I(age >= 12000) + I(age + 0*dose >= {high})", SCHEMA)
        assert bool(few_chosen(tuple(terms_in({"spec": spec})), columns, np.ones(n), 5)) is said
