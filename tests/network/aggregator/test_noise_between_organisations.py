"""Studies whose noise aggregators of their own organisations add: what guards of stations want, and what journals say."""

import pytest

from aggregator_house import ADDING, SHARES, Federation
from station_house import MEANS

NAMES = ("alpha", "beta", "gamma", "delta", "eta")
ALLOWED = {"approval": "automatic", "programs": [{"name": "moments"}]}
NOISY = MEANS + SHARES + '[protection.mechanism]\nlaw = "gaussian"\nnoise_multiplier = 5.0\nat = "aggregators"\n'
WANTS = {"hidden_rows": True, "noise": "aggregators", "noise_multiplier": 2.0}
BUDGET = {"epsilon": 4.0, "delta": 1e-5, "unit": "record", "trust": "aggregators"}


def federation(tmp_path, guard, **how):
    return Federation(tmp_path, dict.fromkeys(NAMES, guard), **ALLOWED, **how)


@pytest.mark.slow
def test_a_study_runs_whose_noise_three_aggregators_add_each_all_of_it(tmp_path):
    fed = federation(tmp_path, {"require": WANTS, "budget": BUDGET})
    kept = fed.go(id := fed.submit(NOISY))
    assert kept.state == "finished", kept.reason
    assert id
    for name in ADDING:
        (total, *_) = fed.totals(name)
        assert "a total with gaussian noise of this aggregator's own of 5 parties" in total.words
        assert any("adds gaussian noise of its own" in entry.words for entry in fed.gates[name].journal.entries())
    ledger = (tmp_path / "runs" / id / "ledger.jsonl").read_text()
    assert "Gaussian(5) at each of 3 aggregators" in ledger


@pytest.mark.slow
@pytest.mark.parametrize(
    "guard",
    [
        {"require": WANTS | {"noise": "shares"}},
        {"require": WANTS | {"noise_multiplier": 9.0}},
        {"budget": BUDGET | {"trust": "parties"}},
    ],
    ids=["stronger noise", "more noise", "other trust"],
)
def test_guards_that_want_more_refuse_it(tmp_path, guard):
    fed = federation(tmp_path, guard)
    kept = fed.go(fed.submit(NOISY), 60.0)
    assert kept.state == "refused"
    assert "HR-606" in kept.reason
    assert all(not fed.totals(name) for name in ADDING)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["server", ""])
def test_a_guard_that_wants_noise_of_aggregators_takes_none_that_is_less(tmp_path, place):
    text = NOISY.replace('at = "aggregators"', f'at = "{place}"') if place else MEANS + SHARES
    fed = federation(tmp_path, {"require": WANTS})
    kept = fed.go(fed.submit(text), 60.0)
    assert kept.state == "refused"
    assert "HR-606" in kept.reason
