"""Many regressions at once equal statsmodels one by one; column sums from which members are told are refused."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import DisclosureExceeded, MissingColumn, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.stats import screen
from hedgerow.stats.linear.losses import loss_of
from hedgerow.stats.screen_sums import column_scores, signed_scores

FAMILIES = {"binomial": sm.families.Binomial(), "gaussian": sm.families.Gaussian(), "poisson": sm.families.Poisson()}
TARGETS = {
    "binomial": Column("ill", "binary"),
    "gaussian": Column("ill", "number", low=-8, high=8),
    "poisson": Column("ill", "integer", low=0, high=40),
}


def cohort(n=600, m=12, family="binomial", seed=0, planted=0.5):
    """Genotypes of m places, two covariates, and a target that depends on the first place."""
    rng = np.random.default_rng(seed)
    G = rng.binomial(2, rng.uniform(0.05, 0.5, m), (n, m)).astype(float)
    age, sex = rng.uniform(-1, 1, n), rng.integers(0, 2, n).astype(float)
    eta = 0.3 * age + planted * G[:, 0] - 0.4
    y = {
        "binomial": lambda: (rng.random(n) < expit(eta)).astype(float),
        "gaussian": lambda: np.clip(eta + rng.normal(size=n), -8, 8),
        "poisson": lambda: np.minimum(rng.poisson(np.exp(eta)), 40).astype(float),
    }[family]()
    schema = Schema((
        Column("age", "number", low=-1, high=1), Column("sex", "binary"), TARGETS[family],
        Column("g", "integer", low=0, high=2, shape=(m,)),
    ))  # fmt: skip
    return Table(schema.admit({"age": age, "sex": sex, "ill": y, "g": G.astype(int)}), schema)


def hospitals(table, n=3, **channel):
    return hr.simulate(table, iid(n), seed=0).protect(**channel)


def hidden(table):
    return hospitals(table, aggregation=hr.SecAgg(records=600))


@pytest.mark.parametrize("protected", [hospitals, hidden])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_test_is_that_of_statsmodels(family, protected):
    table = cohort(family=family)
    found = screen(protected(table), "ill ~ age + sex", ["g"], family=family)
    C = np.column_stack([np.ones(600), table["age"], table["sex"]])
    null = sm.GLM(table["ill"], C, family=FAMILIES[family]).fit(tol=1e-13)
    expected = [float(np.ravel(null.score_test(exog_extra=table["g"][:, [j]].astype(float))[0])[0]) for j in range(12)]
    exact = protected is hospitals
    np.testing.assert_allclose(found.chi_square, expected, rtol=1e-10 if exact else 1e-6, atol=1e-9)
    assert found.names[3] == "g[3]"
    if family == "gaussian":  # effect and t test are those of the whole model
        wholes = [sm.OLS(table["ill"], np.column_stack([C, table["g"][:, j]])).fit() for j in range(12)]
        np.testing.assert_allclose(found.effect, [fit.params[-1] for fit in wholes], rtol=1e-8 if exact else 1e-5)
        np.testing.assert_allclose(found.p_values, [fit.pvalues[-1] for fit in wholes], rtol=1e-8 if exact else 1e-4)


def test_what_leaves_is_one_question_of_m_times_p_plus_two():
    federation = hospitals(cohort())
    found = screen(federation, "ill ~ age + sex", ["g"])
    assert federation.ledger.since(0)[-1].exact_numbers == 12 * (3 + 2)
    assert "u (12,), gg (12,), gx (12, 3), once" in found.left
    frame = found.to_frame().sort_values("p")
    assert frame.index[0] == "g[0]"
    assert (frame["p (Holm)"] >= frame["p"]).all()
    assert frame["p (Holm)"].iloc[0] == pytest.approx(12 * frame["p"].iloc[0])


def test_named_columns_and_one_that_the_null_model_spans():
    table = hr.data.load("breast_cancer").take(range(400))
    columns = table.columns | {"twice": 2 * table["mean_texture"]}
    schema = Schema((*table.schema, Column("twice", "number", low=0, high=200)))
    found = screen(hospitals(Table(columns, schema)), "malignant ~ mean_texture", ["mean_radius", "twice"])
    assert found.names == ("mean_radius", "twice")
    assert found.p_values[0] < 1e-20
    assert np.isnan(found.p_values[1])


def test_missing_values_leave_a_record_out():
    table = hr.data.load("breast_cancer").take(range(400))
    columns = table.columns | {"mean_radius": np.where(np.arange(400) % 9 == 0, np.nan, table["mean_radius"])}
    gaps = Table(columns, table.schema.allowing(missing=True))
    settings = {"formula": "malignant ~ mean_texture", "columns": ["mean_radius", "mean_area"]}
    found = screen(hospitals(gaps), **settings)
    expected = screen(hospitals(table.take(np.arange(400) % 9 != 0)), **settings)
    np.testing.assert_allclose(found.chi_square, expected.chi_square, rtol=1e-9)
    assert found.n == expected.n


# ---- who took part --------------------------------------------------------------------------------------------------
def told_apart(mean, known, inside, outside):
    """Homer's attack: whose columns are nearer to released means than to public ones; the area under its ROC curve."""
    a, b = ((np.abs(G - known) - np.abs(G - mean)).sum(1) for G in (inside, outside))
    return float((a[:, None] > b).mean())


def genotypes(n, m, seed=0):
    rng = np.random.default_rng(seed)
    maf = rng.uniform(0.05, 0.5, m)
    return 2 * maf, rng.binomial(2, maf, (n, m)).astype(float), rng.binomial(2, maf, (200, m)).astype(float)


def test_homers_attack_tells_members_from_raw_sums_and_is_refused():
    known, G, outside = genotypes(300, 4000)
    assert told_apart(G.mean(0), known, G[:200], outside) > 0.95
    rng = np.random.default_rng(1)
    schema = Schema((Column("ill", "binary"), Column("g", "integer", low=0, high=2, shape=(4000,))))
    table = Table(schema.admit({"ill": rng.integers(0, 2, 300), "g": G.astype(int)}), schema)
    for federation in (hospitals(table), hidden(table)):
        with pytest.raises(DisclosureExceeded, match="who took part"):
            screen(federation, "ill ~ 1", ["g"])
        assert not any("column_scores" in entry.query for entry in federation.ledger.since(0))
    allowed = hr.simulate(table, iid(3), seed=0, disclosure=math.inf)
    assert len(screen(allowed, "ill ~ 1", ["g"]).names) == 4000


def test_as_many_columns_as_are_allowed_tell_hardly_anything():
    known, G, outside = genotypes(3000, 3000 // 9)  # a third of the records, three numbers for each column
    assert told_apart(G.mean(0), known, G[:1000], outside) < 0.65


def test_many_small_screens_are_refused_like_one_of_all_their_columns():
    table = hr.data.load("breast_cancer").take(range(60))
    names = [name for name in table.schema.features if name != "mean_texture"]
    federation = hr.simulate(table, iid(3), seed=0).protect(aggregation=hr.SecAgg(records=60))
    screen(federation, "malignant ~ mean_texture", names[:4])
    with pytest.raises(DisclosureExceeded, match=r"beside 16 of earlier screens(?s:.*)at most 1 columns more"):
        screen(federation, "malignant ~ mean_texture", names[4:8])


def test_the_rule_counts_the_records_of_a_party_or_of_all_where_rows_are_hidden():
    table = cohort(m=30)
    with pytest.raises(DisclosureExceeded, match="on average, 200 records"):
        screen(hospitals(table), "ill ~ age + sex", ["g"])
    assert len(screen(hidden(table), "ill ~ age + sex", ["g"]).names) == 30


# ---- the few best ---------------------------------------------------------------------------------------------------
def test_the_best_columns_are_chosen_and_asked_for_alone():
    federation = hospitals(cohort(n=3000, m=300, planted=1.0))
    found = screen(federation, "ill ~ age + sex", ["g"], best=3, epsilon=6.0)
    assert len(set(found.names)) == 3
    assert "g[0]" in found.names
    assert found.screened == 300
    assert (found.adjusted >= np.minimum(298 * found.p_values, 1) * (1 - 1e-12)).all()
    *choices, last = federation.ledger.since(0)[-4:]
    assert [entry.event.epsilon for entry in choices] == [2.0, 2.0, 2.0]
    assert last.exact_numbers == 3 * 5


def test_one_record_moves_a_score_by_its_bound_at_most():
    """Of a logistic model by at most one, of columns in units of their ranges."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        columns = {"X": rng.normal(size=(1, 2)), "y": rng.integers(0, 2, 1) * 1.0, "offset": np.zeros(1)}
        party = hr.Party("p", columns | {"g": rng.integers(0, 3, (1, 4)) * 1.0}, np.ones(1))
        broadcast = {"beta": rng.normal(0, 5, 2), "which": np.arange(4), "limits": np.full(4, 2.0)}
        found = signed_scores(broadcast, party, None, family="binomial", columns=("g",))
        assert np.abs(found).max() <= 1
        sums = column_scores(broadcast, party, None, family="binomial", columns=("g",))
        np.testing.assert_array_equal(found[:4], sums["u"])
        assert sums["gg"].max() <= 0.25
    assert loss_of("binomial").limits((0.0, 1.0), (-50.0, 50.0), 0.0)["slope"] == 1.0


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_refusals_come_before_any_party_is_asked():
    table = cohort()
    places = Schema((*table.schema, Column("place", "category", levels=("a", "b"))))
    federation = hospitals(Table(table.columns | {"place": np.zeros(600, np.int16)}, places))
    for error, settings in (
        (MissingColumn, {"columns": ["stage"]}),
        (SchemaInvalid, {"columns": ["place"]}),
        (SettingsInvalid, {"columns": ["age"]}),
        (SettingsInvalid, {"columns": []}),
        (SettingsInvalid, {"columns": ["g"], "best": 13}),
        (SettingsInvalid, {"columns": ["g"], "family": "gamma"}),
    ):
        with pytest.raises(error):
            screen(federation, **{"formula": "ill ~ age"} | settings)
    with pytest.raises(UnboundedSum, match="null model"):
        screen(hospitals(table, mechanism=hr.Gaussian(1.0)), "ill ~ age", ["g"])
    assert len(federation.ledger) == 0
    open_ = Schema((*table.schema.select(("age", "ill")), Column("g", "number")))
    bare = Table({"age": table["age"], "ill": table["ill"], "g": table["g"][:, 0].astype(float)}, open_)
    with pytest.raises(UnboundedSum, match="a screened column, of g,"):
        screen(hospitals(bare), "ill ~ age", ["g"], best=1)
    with pytest.raises(UnboundedSum):
        screen(hidden(bare), "ill ~ age", ["g"])
