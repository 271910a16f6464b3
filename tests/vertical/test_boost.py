"""Boosted trees across columns are those of the pooled table, node by node."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import ArgumentInvalid, BudgetExhausted, CohortTooSmall, MissingColumn, SettingsInvalid, UnlawfulChannel
from hedgerow.vertical import X25519
from hedgerow.vertical.boost import boosted_trees, predict
from hedgerow.vertical.boost.locals import enough_between, left_out, totals

N = 400


@hr.local
def as_in_training(broadcast, party, rng):
    if party.id == "clinic":
        np.testing.assert_allclose(party.state["predicted"], party.state["score"], rtol=1e-12)


@hr.local
def as_told(broadcast, party, rng):
    if party.id == "laboratory":
        np.testing.assert_allclose(np.sort(party.state["predicted"]), broadcast, atol=1e-9)


def people(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(N, 4)).round(2), columns=["a", "b", "c", "d"])
    frame["ill"] = (frame["a"] + frame["c"] * (frame["d"] > 0) + rng.logistic(size=N) * 0.5 > 0).astype(int)
    frame["cost"] = (frame["a"] ** 2 + 2 * frame["c"] + rng.normal(size=N) * 0.1).round(2)
    frame["id"] = [f"person-{rng.integers(1 << 60)}-{i}" for i in range(N)]
    return frame


def apart(frame, seed=0):
    clinic = hr.data.Table.from_frame(frame[["id", "a", "b", "ill", "cost"]], declared={"id": {"many": True}})
    tables = {
        "clinic": clinic.declare(cost=(-20, 40)),
        "laboratory": frame[["id", "c", "d"]].sample(frac=1, random_state=1),
    }
    return hr.simulate(tables, on="id", seed=seed).align(on="id", by=X25519(least=10))


def pooled(frame, label, logistic, trees, depth, bins=8, rate=0.3, r=1.0, least=10):
    """The same algorithm in the plainest form, over all columns at once; returns (column, gain) of all cuts, and scores."""
    X, y = frame[["a", "b", "c", "d"]].to_numpy(), frame[label].to_numpy(float)
    edges = [np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf")) for x in X.T]
    edges = [e[e < x.max()] for e, x in zip(edges, X.T, strict=True)]
    score = np.full(len(y), np.log(y.mean() / (1 - y.mean())) if logistic else y.mean())
    cuts = []
    for _ in range(trees):
        p = 1 / (1 + np.exp(-score))
        g, h = (p - y, p * (1 - p)) if logistic else (score - y, np.ones_like(y))
        level = [np.ones(len(y), bool)]
        for _ in range(depth):
            after = []
            for here in level:
                best = (1e-9, None)
                for k, column in enumerate(edges):
                    for edge in column:
                        left = here & (X[:, k] <= edge)
                        right = here & ~left
                        if min(left.sum(), right.sum()) >= least:
                            gain = (
                                sum(s * g[m].sum() ** 2 / (h[m].sum() + r) for s, m in ((1, left), (1, right), (-1, here))) / 2
                            )
                            best = max(best, (gain, (k, left, right)), key=lambda one: one[0])
                if best[1] is None:
                    score = score - rate * here * g[here].sum() / (h[here].sum() + r)
                else:
                    cuts.append(("abcd"[best[1][0]], best[0]))
                    after += best[1][1:]
            level = after
        for here in level:
            score = score - rate * here * g[here].sum() / (h[here].sum() + r)
    return cuts, score


@pytest.mark.parametrize(("label", "logistic"), [("ill", True), ("cost", False)])
def test_trees_are_those_of_the_pooled_table(label, logistic):
    frame = people()
    both = apart(frame)
    fit = boosted_trees(both, label, trees=2, depth=2, bins=8, columns=["a", "b", "c", "d"])
    want, score = pooled(frame, label, logistic, 2, 2)
    found = [(fit.columns[cut.party][cut.column], cut.gain) for cut in fit.cuts()]
    assert [name for name, _ in found] == [name for name, _ in want]
    np.testing.assert_allclose([gain for _, gain in found], [gain for _, gain in want], rtol=1e-5)
    y = frame[label]
    loss = np.logaddexp(0, score) - y * score if logistic else (score - y) ** 2 / 2
    more = boosted_trees(apart(frame), label, trees=3, depth=2, bins=8, columns=["a", "b", "c", "d"])
    assert more.losses[2] == pytest.approx(loss.mean(), rel=1e-5)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 12))
def test_v11_every_bin_holds_enough_people(values, least):
    drawn = np.sort(np.array(values, float))
    edges = enough_between(np.unique(drawn), drawn, least)
    counts = np.bincount(np.searchsorted(edges, drawn, side="left"), minlength=len(edges) + 1)
    assert len(edges) == 0 or counts.min() >= least
    if least == 1:
        assert edges.tolist() == np.unique(drawn)[:-1].tolist()


def test_v11_bins_of_few_people_are_joined_so_that_trees_grow():
    """With 32 bins of 400 people and a level of three people, bins as quantiles cut them would be refused."""
    frame = people()
    frame["c"] = np.where(np.arange(N) < 3, -50.0, frame["c"].round(0))
    fit = boosted_trees(apart(frame), "ill", trees=1, depth=2, bins=256, columns=["a", "b", "c", "d"])
    assert fit.cuts()


@pytest.mark.parametrize(("wrong", "told"), [(0, 60), (3, 0), (10, 50), (57, 0), (60, 0)])
def test_v11_guesses_that_are_right_or_wrong_for_few_people_are_not_told(wrong, told):
    y = np.arange(60) % 2 * 1.0
    party = hr.Party("clinic", hr.data.Table.from_frame(pd.DataFrame({"ill": y})), np.ones(60))
    score = np.where(np.arange(60) < wrong, 1 - 2 * y, 2 * y - 1)
    party.state.update({"score": score, "in": np.ones(60, bool)})
    ask = {"holder": "clinic", "label": "ill", "loss": "logistic", "scale": 1.0, "held_out": False}
    assert totals(None, party, None, **ask, least=10)[:, 1].sum() == told


@pytest.mark.slow
def test_people_left_out_are_predicted_better_than_by_the_mean():
    frame = people()
    fit = boosted_trees(apart(frame), "ill", trees=10, depth=3, bins=16, columns=["a", "b", "c", "d"], holdout=0.25, seed=5)
    share = frame["ill"].mean()
    assert fit.measured["accuracy"] > max(share, 1 - share) + 0.1
    assert fit.losses[-1] < fit.losses[0]
    assert set(fit.importance()) <= set("abcd")
    assert "people left out" in str(fit)
    assert left_out(N, 0.25, 5).sum() == N // 4


def test_v20_thresholds_stay_with_the_owner_and_the_holder_of_labels_is_told_sides():
    both = apart(people())
    fit = boosted_trees(both, "ill", trees=1, depth=1, bins=8, columns=["c", "d"])
    assert {cut.party for cut in fit.cuts()} == {"laboratory"}
    assert not any(hasattr(cut, "threshold") for cut in fit.cuts())
    assert any("sides" in sentence for sentence in both.saw["clinic"])
    assert not any("sides" in sentence for sentence in both.saw["laboratory"])


def test_what_cannot_be_boosted_is_refused_before_anybody_is_asked():
    both = apart(people())
    asked = len(both.ledger)
    with pytest.raises(SettingsInvalid, match="trees=0"):
        boosted_trees(both, "ill", trees=0)
    with pytest.raises(MissingColumn):
        boosted_trees(both, "il")
    with pytest.raises(CohortTooSmall):
        boosted_trees(both, "ill", holdout=0.01)
    assert len(both.ledger) == asked


def test_a_budget_refuses_sides_of_single_people():
    frame = people()
    tables = {"clinic": frame[["id", "a", "ill"]], "laboratory": frame[["id", "c"]]}
    both = hr.simulate(tables, on="id", seed=0).within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record"))
    with pytest.raises(BudgetExhausted):
        boosted_trees(both.align(on="id", by=X25519(least=10)), "ill", trees=1)


def test_labels_of_several_levels_noise_and_unknown_settings_are_refused_before_anybody_is_asked():
    frame = people()
    frame["ward"] = np.resize(["surgery", "cardiology", "maternity"], N)
    frame["sex"] = np.where(frame["a"] + frame["ill"] > 0, "male", "female")
    tables = {"clinic": frame[["id", "a", "ill", "ward", "sex"]], "laboratory": frame[["id", "c"]]}
    both = hr.simulate(tables, on="id", seed=0).align(on="id", by=X25519(least=10))
    asked = len(both.ledger)
    with pytest.raises(SettingsInvalid, match="'ward' is a category of 3 levels"):
        boosted_trees(both, "ward", trees=1)
    with pytest.raises(SettingsInvalid, match="loss='logistic'"):
        boosted_trees(both, "a", trees=1, loss="logistic")
    with pytest.raises(ArgumentInvalid, match="Did you mean 'trees'"):
        hr.vertical.boost.boosted_trees(both, "ill", tree=1)
    with pytest.raises(UnlawfulChannel, match="sides of single people"):
        boosted_trees(both.protect(mechanism=hr.Gaussian(4.0, at="shares", least=2)), "ill", trees=1)
    assert len(both.ledger) == asked
    fit = boosted_trees(both, "sex", trees=1, depth=1, bins=4, columns=["a", "c"])
    assert fit.loss == "logistic"
    assert fit.losses[0] < 0.7  # log 2, at the base score


def test_predictions_are_the_scores_of_the_training_at_whom_they_are_for():
    frame = people()
    both = apart(frame)
    settings = {"trees": 2, "depth": 2, "bins": 8, "columns": ["a", "b", "c", "d"]}
    fit = boosted_trees(both, "ill", **settings)
    assert predict(both, fit, "clinic") is None
    both.each(as_in_training)
    boosted_trees(both, "cost", trees=1, depth=1, bins=4)  # other bins, other scores
    told = predict(both, fit, "hub")
    _, scores = pooled(frame, "ill", True, 2, 2)
    np.testing.assert_allclose(np.sort(told), np.sort(scores), atol=1e-5)
    predict(both, fit, "laboratory")
    both.each(as_told, np.sort(told))
    with pytest.raises(MissingColumn, match="Did you mean 'clinic'"):
        predict(both, fit, "clinc")
