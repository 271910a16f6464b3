"""Secure scaling by one sum: 2.0 is the pooled standard deviation, the printed formula is off or impossible."""

import numpy as np
import pytest
from clinic import clinic, federation

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.errors import HedgerowWarning, SettingsInvalid
from hedgerow.stats import scaling
from hedgerow.stats.hidden.sso import secure_scaling, variance


def test_one_sum_gives_the_pooled_mean_and_sd():
    fed, frame = federation(), clinic().to_pandas()[["age", "dose"]]
    found = secure_scaling(fed, ["age", "dose"])
    np.testing.assert_allclose(found.means, frame.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.scales, frame.std(ddof=0), rtol=1e-10)
    assert [entry.numbers for entry in fed.ledger.entries] == [5]


def test_it_differs_from_two_questions_by_n_minus_one():
    once, twice = secure_scaling(federation(), ["age"]), scaling(federation(), ["age"])
    np.testing.assert_allclose(once.scales[0] / twice.scales[0], np.sqrt(299 / 300), rtol=1e-10)


def test_its_scaling_standardises():
    fed = federation()
    scaled = secure_scaling(fed, ["age", "visits"]).apply(fed)
    again = secure_scaling(scaled, ["age", "visits"])
    np.testing.assert_allclose(again.means, 0, atol=1e-10)
    np.testing.assert_allclose(again.scales, 1, rtol=1e-10)


def test_the_printed_formula_is_off_by_the_square_of_the_mean():
    x = np.random.default_rng(0).normal(0.5, 1, 5000)
    sums = len(x), np.array([x.sum()]), np.array([(x**2).sum()])
    expected = x.var() - (len(x) - 1) / len(x) * x.mean() ** 2
    np.testing.assert_allclose(variance(*sums, "printed"), expected, rtol=1e-10)
    assert 0.8 < np.sqrt(variance(*sums, "printed")[0]) / x.std() < 0.9  # the thesis saw 10 to 20 percent


def test_the_printed_formula_is_right_for_centred_columns_alone():
    fed, columns = federation(), ["age", "dose"]
    centred = scaling(fed, columns).apply(fed)
    printed, fixed = (secure_scaling(centred, columns, formula=f).scales for f in ("printed", "2.0"))
    np.testing.assert_allclose(printed, fixed, rtol=1e-10)


@pytest.mark.slow
def test_on_real_columns_the_printed_sd_is_half_or_none_at_all():
    table = hr.data.load("breast_cancer")
    hospitals = hr.simulate(table, hr.data.iid(parties=10), seed=0)
    printed = secure_scaling(hospitals, ["area_error"], formula="printed")
    np.testing.assert_allclose(printed.scales[0] / table["area_error"].std(), 0.462, atol=5e-4)
    with pytest.raises(SettingsInvalid, match=r"'mean_radius', of mean 14\.13, a variance of -186\.8"):
        secure_scaling(hospitals, ["mean_radius"], formula="printed")
    numbers = [c for c in table.schema.features if table.schema[c].kind == "number"]
    sums = 569, *(np.array([(table[c] ** power).sum() for c in numbers]) for power in (1, 2))
    assert (variance(*sums, "printed") <= 0).sum() == 29  # of thirty
    assert (variance(*sums) > 0).all()


def test_digits_are_lost_where_the_mean_is_far_and_a_warning_says_so():
    table = clinic()
    far = Table({**table.columns, "open": table["open"] + 1e9}, table.schema)
    with pytest.warns(HedgerowWarning, match="open: constant, or so far from zero"):
        assert secure_scaling(federation(far), ["open"]).scales == (1.0,)
    near = Table({**table.columns, "open": table["open"] + 1e3}, table.schema)
    np.testing.assert_allclose(secure_scaling(federation(near), ["open"]).scales[0], near["open"].std(), rtol=1e-6)


def test_a_constant_column_keeps_its_scale():
    table = clinic()
    flat = Table({**table.columns, "dose": np.full(300, 2.3)}, table.schema)
    with pytest.warns(HedgerowWarning, match="dose"):
        found = secure_scaling(federation(flat), ["age", "dose"])
    assert found.scales[1] == 1.0


def test_an_unknown_formula_is_refused_before_anybody_is_asked():
    fed = federation()
    with pytest.raises(SettingsInvalid, match=r"3\.0"):
        secure_scaling(fed, ["age"], formula="3.0")
    assert len(fed.ledger) == 0
