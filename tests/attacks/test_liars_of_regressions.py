"""Liars who turn the sums of a regression around are refused with a code: no records give such sums."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.engines import Acting, InProcess
from hedgerow.errors import HedgerowError, NotIdentified
from hedgerow.stats.difficulties import check_identified

TABLE = hr.data.load("breast_cancer")
FORMULA = f"{TABLE.schema.target} ~ mean_radius + mean_texture"


def lied_to(count, factor, from_round=1):
    liars = Liars(tuple(f"party {i + 1}" for i in range(count)), (ScaledRows(factor, kind="forge"),), from_round=from_round)
    return hr.simulate(TABLE, hr.data.iid(parties=10), engine=InProcess(acts=Acting(liars)), seed=0)


@pytest.mark.parametrize(("count", "factor"), [(3, -4.0), (5, -1.0), (1, -19.0)])
@pytest.mark.parametrize("fit", [hr.stats.logistic_regression, hr.stats.linear_regression])
def test_squares_below_zero_are_refused_with_the_column(fit, count, factor):
    with pytest.raises(NotIdentified, match=r"'Intercept' is -[0-9.]+, which no records give") as told:
        fit(lied_to(count, factor), FORMULA)
    assert "Some party answers" in told.value.remedy


@pytest.mark.parametrize("from_round", [2, 3, 4])
def test_a_lie_in_a_later_round_ends_with_a_code_too(from_round):
    with pytest.raises(HedgerowError):
        hr.stats.logistic_regression(lied_to(3, -4.0, from_round), FORMULA)


def test_an_indefinite_matrix_is_no_sum_of_squares():
    with pytest.raises(NotIdentified, match="no records give"):
        check_identified(np.array([[1.0, 2.0], [2.0, 1.0]]), 9, ("a", "b"), residual=False)
    with pytest.raises(NotIdentified, match="nan, which no records give"):
        check_identified(np.array([[1.0, 0.0], [0.0, float("nan")]]), 9, ("a", "b"), residual=False)
