"""A Gaussian copula from two sums: exact sums, bounds, noise, conditions."""

import itertools

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.bound import l1
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.synth import copula, copula_draws, copula_sums
from hedgerow.synth.copula import _Layout, add_products, bound_of_products, codes_of, count_codes, outcome, synthesizer
from hedgerow.synth.latent import scores_of

SCHEMA = Schema(
    [
        Column("age", "integer", low=17, high=90),
        Column("gain", "number", low=-5, high=5, optional=True),
        Column("kind", "category", levels=("a", "b", "c")),
        Column("ill", "binary", role="target"),
    ]
)
SETTINGS = {"columns": None, "by": None, "bins": 16, "log": ()}


def table(n=800, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal(np.zeros(3), [[1, 0.6, -0.4], [0.6, 1, 0], [-0.4, 0, 1]], size=n)
    gain = np.where(rng.random(n) < 0.1, np.nan, np.clip(z[:, 1], -5, 5))
    age = np.clip(np.rint(50 + 12 * z[:, 0]), 17, 90)
    return Table({"age": age, "gain": gain, "kind": np.digitize(z[:, 2], [-0.5, 1]), "ill": (z[:, 0] > 0.7) * 1.0}, SCHEMA)


@pytest.fixture(scope="module")
def real():
    return table()


@pytest.fixture(scope="module")
def made(real):
    return copula(hr.simulate(real, hr.data.iid(parties=4), seed=0), bins=16)


def test_without_noise_the_model_is_that_of_the_pooled_records(real, made):
    codes = codes_of(SCHEMA, SETTINGS).number(real.columns).astype(int)
    shares = [np.bincount(codes[:, j], minlength=size) / len(real) for j, size in enumerate(made.codes.sizes)]
    np.testing.assert_allclose(made.shares[0], np.concatenate(shares), atol=1e-12)
    s = np.stack([scores_of(p)[codes[:, j]] for j, p in enumerate(shares)], axis=1)
    products = (s.T @ s)[np.triu_indices(4, 1)]
    *_, state = copula_sums(hr.simulate({"one": real}), bins=16)
    np.testing.assert_allclose(state.products[0], products, rtol=1e-9)
    pooled = copula(hr.simulate({"one": real}), bins=16)
    np.testing.assert_allclose(made.correlation, pooled.correlation, atol=1e-9)
    assert made.correlation[0][0, 2] == pytest.approx(-0.4, abs=0.1)  # through three levels
    assert made.correlation[0][0, 3] > 0.95  # a threshold of the age itself


def test_the_order_of_parties_and_their_number_change_nothing(real, made):
    parts = {str(k): real.take(range(k, len(real), 3)) for k in (2, 0, 1)}
    np.testing.assert_allclose(copula(hr.simulate(parts), bins=16).correlation, made.correlation, atol=1e-9)


def test_records_have_the_shares_and_correlations_of_the_model_and_obey_the_schema(made):
    drawn = made.sample(3000, seed=1)
    SCHEMA.admit(drawn.columns)
    codes = made.codes.number(drawn.columns).astype(int)
    for j, p in enumerate(np.split(made.shares[0], np.cumsum(made.codes.sizes)[:-1])):
        assert np.abs(np.bincount(codes[:, j], minlength=len(p)) - 3000 * p).max() <= 2
    again = copula(hr.simulate({"made up": drawn}), bins=16)
    np.testing.assert_allclose(again.correlation, made.correlation, atol=0.06)
    assert np.array_equal(made.sample(50, seed=3)["age"], made.sample(50, seed=3)["age"])
    assert drawn.provenance.epsilon is None


@pytest.mark.slow
def test_single_records_have_the_joint_law_too(made):
    """The spread over columns must not make columns of a small sample independent."""
    one = np.array([[made.sample(1, seed=s)[name][0] for name in ("age", "ill")] for s in range(150)])
    assert np.corrcoef(one.T)[0, 1] > 0.45


WHERE = {"ill": 1, "age": (50, 65), "kind": ["b", "c"]}


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "kind"])
def test_conditional_records_equal_filtered_ones(real, by):
    made = copula(hr.simulate({"one": real}), bins=16, by=by)
    n = 20_000
    every, some = made.sample(8 * n, seed=0), made.sample(n, where=WHERE, seed=1)
    keep = (every["ill"] == 1) & (every["age"] >= 50) & (every["age"] <= 65) & (every["kind"] >= 1)
    assert keep.sum() > 5000
    assert (some["ill"] == 1).all()
    assert ((some["age"] >= 50) & (some["age"] <= 65) & (some["kind"] >= 1)).all()
    for name in ("age", "kind"):
        values = np.unique(every[name])
        p, q = (
            np.array([(one[name] == v).mean() for v in values])
            for one in (Table(every.columns, SCHEMA).take(np.flatnonzero(keep)), some)
        )
        assert 0.5 * np.abs(p - q).sum() < 0.03, name
    assert np.nanmean(some["gain"]) == pytest.approx(np.nanmean(every["gain"][keep]), abs=0.04)
    assert np.isnan(some["gain"]).mean() == pytest.approx(np.isnan(every["gain"][keep]).mean(), abs=0.02)


def test_conditions_without_probability_and_too_rare_ones_are_refused(made, monkeypatch):
    nothing = table()
    nothing = Table({**nothing.columns, "kind": np.zeros(len(nothing))}, SCHEMA)
    with pytest.raises(SettingsInvalid, match="no probability"):
        copula(hr.simulate({"one": nothing}), bins=16).sample(5, where={"kind": "c"})
    monkeypatch.setattr(copula_draws, "BEGUN", 20)
    with pytest.raises(SettingsInvalid, match=r"satisfy all of them[\s\S]*tan"):
        made.sample(5, where={"age": (17, 25), "ill": 1})


def test_by_a_class_is_a_copula_inside_each_class(real):
    made = copula(hr.simulate({"one": real}), by="kind", bins=16)
    assert made.correlation.shape == (3, 3, 3)
    for k in range(3):
        mine = real.take(np.flatnonzero(real["kind"] == k))
        alone = copula(hr.simulate({"one": mine}), columns=["age", "gain", "ill"], bins=16)
        np.testing.assert_allclose(made.correlation[k], alone.correlation[0], atol=1e-9)
        np.testing.assert_allclose(made.shares[k], alone.shares[0], atol=1e-12)
    np.testing.assert_allclose(made.classes, np.bincount(real["kind"].astype(int)) / len(real))
    drawn = made.sample(900, seed=0)
    np.testing.assert_allclose(np.bincount(drawn["kind"].astype(int)) / 900, made.classes, atol=2 / 900)


def test_the_bounds_are_reached_and_never_exceeded():
    """Every record of corners: all pairs of codes; with one record more a sum moves by as much as is said, and no further."""
    schema = Schema(
        [Column(name, "number", low=0, high=1) for name in "abc"] + [Column("w", "number", role="weight", low=0, high=2)]
    )
    settings = SETTINGS | {"bins": 3}
    codes = codes_of(schema, settings)
    layout = _Layout.of(codes, None)
    where = {"sizes": layout.sizes, "by": None, "classes": 1}
    scores = np.tile([-1.0, 0.25, 1.0], 3)[None]
    for channel, norm in ((hr.Gaussian(1.0), 2), (hr.Laplace(1.0), 1)):
        noisy = hr.simulate({"one": Table({name: np.zeros(3) for name in "abc"} | {"w": np.ones(3)}, schema)}).protect(
            mechanism=channel
        )
        bounds = [in_steps(b) for b in (_counts_bound(noisy, codes), bound_of_products(noisy, codes, scores, 1.0, layout))]
        assert [b.norm for b in bounds] == [norm, norm]
        farthest = np.zeros(2)
        for corner in itertools.product(range(3), repeat=3):
            party = Party("one", {"codes": np.array([corner], np.int16)}, np.array([2.0]))
            for i, (ask, broadcast, bound) in enumerate(zip((count_codes, add_products), (None, scores), bounds, strict=True)):
                size = np.linalg.norm(ask(broadcast, party, None, bounds=bound, **where).ravel(), norm)
                assert size <= bound.radius
                farthest[i] = max(farthest[i], size / bound.radius)
        np.testing.assert_allclose(farthest, 1.0, atol=1e-6)
    assert bounds[0].radius == 2 * 3  # l1 of three counts of weight two
    assert bounds[1].radius == 2 * 3  # and of three products


def _counts_bound(federation, codes):
    from hedgerow.trees.noise import ball

    return ball(federation, len(codes.columns), codes.heaviest)


def test_a_bound_of_products_that_forgets_the_pairs_would_be_exceeded():
    """A twin: one pair's bound for all of them."""
    party = Party("one", {"codes": np.array([[0, 0, 0]], np.int16)}, np.array([1.0]))
    added = add_products(np.tile([-1.0, 1.0], 3)[None], party, None, sizes=(2, 2, 2), by=None, classes=1)
    assert np.linalg.norm(added) > 1.0
    held = add_products(
        np.tile([-1.0, 1.0], 3)[None], party, None, sizes=(2, 2, 2), by=None, classes=1, bounds=in_steps(l1(1, "record"))
    )
    assert np.abs(held).sum() <= 1.0


def test_a_budget_is_spent_and_no_more(real):
    federation = hr.simulate(real, hr.data.iid(parties=4), seed=0)
    made = copula(federation, epsilon=1.0, delta=1e-5, bins=8)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, rel=1e-4)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    assert made.provenance.epsilon == pytest.approx(1.0, rel=1e-4)
    assert "epsilon 1 " in made.sample(10, seed=0).source
    exact = copula(hr.simulate({"one": real}), bins=8)
    assert np.abs(made.correlation - exact.correlation).max() < 0.4


def test_levels_that_never_occur_are_made_at_the_level_of_noise(real):
    never = Table({**real.columns, "kind": np.zeros(len(real))}, SCHEMA)
    drawn = [
        copula(hr.simulate({"one": never}, seed=s), epsilon=0.3, delta=1e-5, bins=8).sample(2000, seed=0) for s in range(4)
    ]
    assert 0 < np.mean([(one["kind"] > 0).mean() for one in drawn]) < 0.2


def test_shares_of_noise_and_a_resumed_run_give_the_same(real):
    federation = hr.simulate(real, hr.data.iid(parties=4), seed=0).protect(aggregation=hr.SecAgg(threshold=3))
    settings = {"epsilon": 1.0, "delta": 1e-5, "bins": 8, "noise_at": "shares", "least": 3}
    first, last = copula_sums(federation, **settings)
    assert (first.round, last.round) == (1, 2)
    assert (last.noise > 0).all()
    again = synthesizer(SETTINGS | {"bins": 8}, _arrays(last), SCHEMA, hr.synth.Provenance())
    assert again.correlation.shape == (1, 4, 4)
    (only,) = copula_sums(federation, **settings, start=first)
    assert np.array_equal(only.counts, first.counts)


def test_an_outcome_without_products_says_that_they_were_never_asked(real):
    federation = hr.simulate({"one": real})
    first, last = copula_sums(federation, bins=8)
    early, late = (outcome(federation, SETTINGS | {"bins": 8}, state) for state in (first, last))
    assert [len(early.tables), len(late.tables)] == [0, 1]
    assert "never asked" in early.notes[0]
    assert not late.notes


def _arrays(state):
    from hedgerow.synth.copula import arrays_of

    return arrays_of(state)


def test_a_single_column_has_no_products(real):
    federation = hr.simulate({"one": real})
    made = copula(federation, columns=["age"], bins=74, epsilon=1.0, delta=1e-5)
    assert len(federation.ledger) == 1
    assert made.sample(5, seed=0).schema.names == ("age",)
    inside = copula(hr.simulate({"one": real}), columns=["age"], by="ill", bins=74)
    drawn = inside.sample(800, seed=0)
    assert drawn["age"][drawn["ill"] == 1].min() > drawn["age"][drawn["ill"] == 0].mean()


@pytest.mark.parametrize(
    "settings", [{"by": "age"}, {"by": "kind", "columns": ["kind"]}, {"reach": 0}, {"reach": np.inf}, {"bins": 1}]
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(real, settings):
    federation = hr.simulate({"one": real})
    with pytest.raises(SettingsInvalid):
        copula(federation, **settings)
    assert len(federation.ledger) == 0


def test_records_count_by_their_weights_and_not_without_one():
    rng = np.random.default_rng(0)
    schema = Schema(
        [Column("a", "binary"), Column("b", "binary"), Column("w", "number", role="weight", low=0, high=2, optional=True)]
    )
    a, w = rng.integers(0, 2, 60) * 1.0, rng.integers(0, 3, 60) * 1.0
    b = np.where(rng.random(60) < 0.8, a, 1 - a)
    lost = np.arange(60) < 6
    weighed = Table({"a": a, "b": b, "w": np.where(lost, np.nan, w)}, schema)
    times = np.where(lost, 0, w).astype(int)
    repeated = Table({"a": np.repeat(a, times), "b": np.repeat(b, times)}, Schema(schema.columns[:2]))
    *_, found = copula_sums(hr.simulate({"one": weighed}))
    *_, wanted = copula_sums(hr.simulate({"one": repeated}))
    np.testing.assert_allclose(found.counts, wanted.counts)
    np.testing.assert_allclose(found.products, wanted.products, atol=1e-9)


@pytest.mark.parametrize("budget", [{}, {"epsilon": 8.0, "delta": 1e-5}])
def test_correlations_do_not_depend_on_the_unit_of_weights(budget):
    rng = np.random.default_rng(1)
    u = np.clip(rng.normal(size=2000), -4, 4)
    columns = {"u": u, "v": np.clip(0.9 * u + 0.43 * rng.normal(size=2000), -4, 4)}

    def found(w):
        numbers = [Column(name, "number", low=-4, high=4) for name in "uv"]
        weighed = Table(
            {**columns, "w": np.full(2000, w)}, Schema([*numbers, Column("w", "number", role="weight", low=0, high=w)])
        )
        return copula(hr.simulate(weighed, hr.data.iid(parties=2), seed=0), bins=16, **budget).correlation[0][0, 1]

    assert found(1e-5) == pytest.approx(found(1.0), abs=0.02)
    assert found(1e-5) > 0.85
