"""Formulas and designs: the same columns at every party, equal to those of patsy, and never evaluated."""

import numpy as np
import patsy
import pytest
from clinic import SCHEMA, clinic

from hedgerow.core.party import WEIGHTS
from hedgerow.data import Column, Schema
from hedgerow.errors import FormulaInvalid, MissingColumn, NotBinary
from hedgerow.stats import Design, design
from hedgerow.stats.expressions import evaluate, interval

FORMULAS = [
    "pain ~ age + stage",
    "pain ~ C(stage, Treatment('II')) + age:stage",
    "pain ~ 0 + stage + arm",
    "pain ~ stage * arm",
    "pain ~ age:stage + np.log(dose)",
    "pain ~ 0 + stage:arm",
    "pain ~ (age + dose + smoker) ** 2 - age",
    "pain ~ I(age ** 2) + I(age / dose) + np.sqrt(visits)",
    "pain ~ 1",
]


def rows(formula, table=None, **settings):
    table = table or clinic(40)
    return design(table.columns, spec=Design.of(formula, table.schema, **settings))


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_are_those_of_patsy(formula):
    table = clinic(40)
    spec = Design.of(formula, table.schema)
    expected = patsy.dmatrix(formula.split("~")[1], table.to_pandas(), return_type="dataframe")
    found = rows(formula)["X"]
    own = [name.replace(" ", "") for name in spec.names]
    for name in expected.columns:
        np.testing.assert_allclose(found[:, own.index(name.replace(" ", ""))], expected[name], err_msg=name)
    assert len(own) == expected.shape[1]


def test_a_party_with_one_level_has_the_columns_of_all():
    table = clinic(60)
    alone = table.take(table["stage"] == 1)
    np.testing.assert_array_equal(rows("pain ~ stage", alone)["X"], np.tile([1.0, 1.0, 0.0], (len(alone), 1)))


def test_preparing_pooled_records_is_preparing_each_partys():
    table = clinic(30)
    formula = "ill ~ stage * age + log(dose)"
    parts = [rows(formula, table.take(part))["X"] for part in (slice(0, 7), slice(7, 30))]
    np.testing.assert_array_equal(np.concatenate(parts), rows(formula, table)["X"])


def test_designs_are_hashable_and_equal_by_value():
    first, second = (Design.of("ill ~ stage + age", SCHEMA) for _ in range(2))
    assert hash(first) == hash(second)
    assert first == second


def test_the_dot_stands_for_the_features():
    assert Design.of("ill ~ .", SCHEMA).names == ("Intercept", "age", "dose", "visits", "smoker", "stage[T.II]", "stage[T.III]")
    assert "age" not in Design.of("age ~ .", SCHEMA).names
    assert "visits" not in Design.of("ill ~ .", SCHEMA, weights="visits").names


def test_the_second_level_of_a_target_is_the_event():
    table = clinic(40)
    np.testing.assert_array_equal(rows("arm ~ age", table)["y"], table["arm"] == 1)


def test_offset_and_weights_are_prepared():
    table = clinic(40)
    found = rows("ill ~ age", table, offset="log(dose)", weights="copies")
    np.testing.assert_allclose(found["offset"], np.log(table["dose"]))
    np.testing.assert_array_equal(found[WEIGHTS], table["copies"])
    assert WEIGHTS not in rows("ill ~ age")


def test_row_limits_come_from_declared_ranges():
    spec = Design.of("ill ~ age + stage + visits:stage", SCHEMA)
    assert spec.limits == (1, 90, 1, 1, 12, 12, 12)[: spec.size]
    np.testing.assert_allclose(spec.row_limit, np.sqrt(1 + 90**2 + 1 + 12**2))
    assert Design.of("ill ~ open", SCHEMA).limits is None
    assert Design.of("ill ~ open", SCHEMA).row_limit is None


def test_unit_columns_reach_at_most_one():
    table = clinic(40)
    spec = Design.of("ill ~ age + log(dose) + stage", SCHEMA).to_unit()
    assert np.abs(design(table.columns, spec=spec)["X"]).max() <= 1
    np.testing.assert_allclose(spec.row_limit, 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age", (18, 90)),
        ("smoker", (0, 1)),
        ("-age + 2", (-88, -16)),
        ("I(pain ** 2)", (0, 1600)),
        ("abs(pain)", (0, 40)),
        ("pain ** 3", (-8000, 64000)),
        ("age * pain", (-1800, 3600)),
        ("age / dose", (1.8, 180)),
        ("log10(dose * 10)", (np.log10(5), 2)),
        ("age > 60", (0, 1)),
        ("age / pain", None),
        ("log(visits)", None),
        ("open + 1", None),
        ("age ** dose", None),
        ("sqrt(pain)", None),
    ],
)
def test_ranges_follow_from_declared_ranges(text, expected):
    found = interval(text, SCHEMA)
    if expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected)
        values = evaluate(text, clinic(200).columns)
        assert expected[0] - 1e-12 <= values.min() <= values.max() <= expected[1] + 1e-12


@pytest.mark.parametrize(
    ("formula", "error", "match"),
    [
        ("ill ~ agee", MissingColumn, "Did you mean 'age'"),
        ("ill ~ log(agee)", MissingColumn, "Did you mean 'age'"),
        ("il ~ age", MissingColumn, "'il'"),
        ("ill ~ scale(age)", FormulaInvalid, "hr.stats.standardise"),
        ("ill ~ center(age)", FormulaInvalid, "needs all records"),
        ("ill ~ poly(age, 2)", FormulaInvalid, "needs all records"),
        ("ill ~ bs(age, df=4)", FormulaInvalid, "needs all records"),
        ("ill ~ lgo(age)", FormulaInvalid, "'log'"),
        ("ill ~ log(age, 2)", FormulaInvalid, "more than one argument"),
        ("ill ~ log(stage)", FormulaInvalid, "is a category"),
        ("ill ~ C(age)", FormulaInvalid, "declares no levels"),
        ("ill ~ C(stage, Treatment('IV'))", FormulaInvalid, "'IV'"),
        ("ill ~ C(stage, Sum)", FormulaInvalid, "not understood"),
        ("ill ~ 2:age", FormulaInvalid, "is a number"),
        ("ill ~ age | dose", FormulaInvalid, "one `~` and no `|`"),
        ("ill ~ age +* dose", FormulaInvalid, "cannot be read"),
        ("ill age", FormulaInvalid, "cannot be read"),
        ("ill ~ log(age", FormulaInvalid, "cannot be read"),
        ("ill + arm ~ age", FormulaInvalid, "2 targets"),
        ("ill ~ 0", FormulaInvalid, "no columns"),
        ("ill ~ age[0]", FormulaInvalid, "not arithmetic"),
        ("ill ~ __import__('os').getcwd()", FormulaInvalid, "not"),
        ("ill ~ I((lambda: 1)())", FormulaInvalid, "not"),
        ("ill ~ age.__class__", FormulaInvalid, "not arithmetic"),
        ("stage ~ age", NotBinary, "3 levels"),
    ],
)
def test_what_a_formula_cannot_ask_is_refused(formula, error, match):
    with pytest.raises(error, match=match):
        Design.of(formula, SCHEMA)


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"offset": "stage"}, FormulaInvalid, "'stage' is a category"),
        ({"weights": "arm"}, FormulaInvalid, "'arm' is a category"),
        ({"offset": "log(doze)"}, MissingColumn, "Did you mean 'dose'"),
        ({"weights": "copy"}, MissingColumn, "'copies'"),
    ],
)
def test_offsets_and_weights_are_numbers(settings, error, match):
    with pytest.raises(error, match=match):
        Design.of("ill ~ age", SCHEMA, **settings)


@pytest.mark.slow
def test_a_sum_of_many_columns_is_read():
    names = [f"x{i}" for i in range(600)]
    schema = Schema((Column("y", "number"), *(Column(name, "number") for name in names), Column("a b", "number")))
    right = " + ".join(names)
    found = Design.of(f"y ~ log(x1) + {right} + `a b` - x3 + x0:x1 + 0", schema).names
    assert found == ("log(x1)", *(name for name in names if name != "x3"), "a b", "x0:x1")


def test_powers_of_numbers_end():
    assert evaluate("age + 9 ** 9 ** 9 ** 9", {"age": np.ones(1)}) == np.inf


def test_columns_of_arrays_are_refused():
    schema = Schema((Column("image", "number", shape=(4,)), Column("y", "binary", role="target")))
    with pytest.raises(FormulaInvalid, match=r"shape \(4,\)"):
        Design.of("y ~ image", schema)
    with pytest.raises(FormulaInvalid, match="stands for no column"):
        Design.of("y ~ .", schema)


def test_names_that_are_no_identifiers_are_quoted():
    schema = Schema((Column("blood pressure", "number"), Column("y", "binary", role="target")))
    columns = {"blood pressure": np.array([120.0, 80.0]), "y": np.array([0.0, 1.0])}
    found = design(columns, spec=Design.of("y ~ `blood pressure`", schema))
    np.testing.assert_array_equal(found["X"], [[1, 120], [1, 80]])
