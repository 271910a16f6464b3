"""Missing values, for every program of the catalogue: the result is that of complete cases, and bounds per record hold."""

import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from hedgerow import Gaussian
from hedgerow.data.join import given
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.store.checkpoint import split
from hedgerow.study import PROGRAMS
from hedgerow.testing import Wired
from hedgerow.testing.neighbours import few, hearing, longest
from hedgerow.testing.records import asked_behind, violations
from hedgerow.testing.subject import Subject, quiet

SAMPLES_RECORDS = ("dpsgd", "dpsgd_on_features", "local_dpsgd", "pate")
"""Which records join, or whom they teach, follows from their places among all of a party, those that are left out included."""
TIMED = ("van_aarle_efficiency",)
ONE_RECORD = [name for name, one in PROGRAMS.items() if one.one_record]
"""Those whose parties hold one record each: without it a party would hold none, which a partition refuses."""
TAKES_ALL = ("counts", "imputed_regression", "table_one", "van_aarle", "synthesizer_trials", "synthetic_quality")
"""Those to which a missing value is a value as well, as it is to synthesizers, or which look at single columns."""
ANALYTIC = (
    "counts",
    "contingency",
    "decision_tree",
    "gradient_descent",
    "hidden_gradient_descent",
    "histogram",
    "linear_regression",
    "logistic_regression",
    "means",
    "moments",
    "quantiles",
    "survival_counts",
)


def with_gaps(table, share=0.04):
    """The same records, of which some lack a value in some column."""
    rng, columns = np.random.default_rng(0), {}
    for column in table.schema:
        columns[column.name] = values = table.columns[column.name].copy()
        lost = rng.random(len(values)) < share
        if column.kind == "category":
            values[lost] = -1
        elif values.dtype.kind == "f":
            values[lost] = np.nan
    return replace(table, columns=columns, schema=table.schema.allowing(missing=True), test=None)


@lru_cache
def subject(name):
    """A program, its case with gaps."""
    found = Subject(PROGRAMS[name])
    found.__dict__["case"] = replace(found.case, table=with_gaps(found.case.table))
    return found


def last(one, built):
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *_, state = one.states(built)
    return state


def numbers(state):
    return {key: np.asarray(value, float) for key, value in split(state)[0].items() if np.asarray(value).dtype.kind in "fiu"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in (*SAMPLES_RECORDS, *TIMED, *ONE_RECORD)])
def test_a_program_computes_what_it_would_of_complete_records(name):
    one = subject(name)
    built = one.built(InProcess(threads=1))
    found = numbers(last(one, built))
    parts = [built.complete(built.table.take(records)) for records in built.partition.indices]
    dense = built.complete(built.table.take(np.concatenate(built.partition.indices)))
    takes_all = name in TAKES_ALL or PROGRAMS[name].synthesizer is not None
    assert sum(map(len, parts)) == len(dense) < len(built.table) or takes_all
    dealt = given(built.partition.names, tuple(map(len, parts)))
    federation = simulate(dense, dealt, seed=0, engine=InProcess(threads=1)).protect(**built.study.protection.slots())
    wanted = numbers(last(one, replace(built, federation=federation)))
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        tolerance = one.case.tolerance * max(1.0, float(np.abs(value).max(initial=0.0)))
        np.testing.assert_allclose(found[key], value, atol=tolerance, err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES_RECORDS)
def test_programs_that_sample_records_read_complete_ones_too(name):
    one = subject(name)
    built = one.built(InProcess(threads=1))
    assert all(np.isfinite(value).all() for value in numbers(last(one, built)).values())
    assert len(built.complete(built.table)) < len(built.table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANALYTIC)
def test_a_record_that_lacks_a_value_moves_no_sum_beyond_its_bound(name):
    """Real records that lack a value are among the neighbours; those moved by a value that becomes known, too."""
    one = subject(name)
    with quiet(), hearing() as heard:
        for _ in zip(range(2), one.states(one.built(InProcess(threads=1))), strict=False):
            pass
    asked = [question for question in few(heard) if question.bound is not None]
    assert any(question.name.endswith(":cases") for question in asked) or name == "counts"
    for question in asked:
        for seed in range(4):
            for what, reached in longest(question, one.case.table, seed):
                assert reached <= 1 + 1e-9, what


@pytest.mark.slow
@pytest.mark.parametrize("name", ANALYTIC)
def test_behind_noise_a_record_that_lacks_a_value_adds_its_own_whole_steps(name):
    asked = asked_behind(Gaussian(0.01), subject(name))
    assert asked
    for one, question, release in asked:
        assert (one.name, violations(question, release, subject(name).case.table, sizes=(1, 3, 17))) == (one.name, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic_regression", "survival_counts", "decision_tree", "fedavg"])
def test_engines_agree_on_records_with_gaps(name):
    one = subject(name)
    found, wired, wanted = (numbers(last(one, one.built(engine))) for engine in (InProcess(threads=2), Wired(), Loop()))
    for key, value in wanted.items():
        np.testing.assert_allclose(wired[key], value, atol=one.case.tolerance * max(1.0, float(np.abs(value).max(initial=0.0))))
        np.testing.assert_allclose(found[key], value, atol=one.case.tolerance * max(1.0, float(np.abs(value).max(initial=0.0))))
