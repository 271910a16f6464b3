"""Noise that adapts to relevance: charged, within its bound by declared ranges, and least squares without noise."""

from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.data import Table
from hedgerow.data.entry import binary, category, declare, number
from hedgerow.errors import SettingsInvalid
from hedgerow.stats.private import linear, relevance_moments, sufficient
from hedgerow.stats.private.relevance import multiplied_bound, relevance_factors
from hedgerow.stats.private.rows import UnitRows, unit_rows
from hedgerow.stats.private.second_moments import unit_moments
from hedgerow.stats.private.solving import TAYLOR

SCHEMA = declare(
    number("a", 0, 1),
    number("b", 0, 1),
    number("c", 0, 1),
    category("site", "x y"),
    number("t", -1, 1, role="target"),
    binary("ill"),
)


def corners() -> dict[str, np.ndarray]:
    cells = product((0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0, 1), (-1.0, 1.0), (0.0, 1.0))
    return dict(zip(SCHEMA.names, map(np.array, zip(*cells, strict=True)), strict=True))


def people(n: int = 500) -> Table:
    rng = np.random.default_rng(0)
    a, b, c, site = rng.random(n), rng.random(n), rng.random(n), rng.integers(0, 2, n)
    t = np.clip(0.9 * a - 0.5 + 0.05 * rng.normal(size=n), -1, 1)
    return Table({"a": a, "b": b, "c": c, "site": site, "t": t, "ill": (t > 0).astype(float)}, SCHEMA)


def contributions(rows: UnitRows, scale: np.ndarray) -> np.ndarray:
    made = unit_rows(corners(), spec=rows)
    party = Party("p", {"X": made["X"][:, None], "y": made["y"][:, None]}, np.ones((len(made["y"]), 1)))
    return unit_moments({"scale": scale}, party, None, parts=TAYLOR[not rows.numeric], labels=not rows.numeric)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("target", ["t", "ill"])
@pytest.mark.parametrize("length", ["fixed", "unit"])
def test_the_ball_of_multiplied_columns_holds_every_corner(norm, target, length):
    rows = UnitRows.of(f"{target} ~ a + b + c + site", SCHEMA, length=length)
    sizes = [len(block.names) for block in rows.blocks]
    for factors in product((1.0, 2.0), repeat=len(sizes)):
        bound = multiplied_bound(TAYLOR[not rows.numeric], rows, np.array(factors), norm)
        found = np.linalg.norm(contributions(rows, np.repeat(factors, sizes)), ord=norm, axis=1).max()
        assert found <= bound.radius * (1 + 1e-12)
        if length == "fixed" and (norm == 1 or len(set(factors)) == 1):
            assert found == pytest.approx(bound.radius, rel=1e-12)  # reached


def test_groups_of_coefficients_together_stay_within_epsilon():
    """Each group's l1 length over its own noise, added up over groups: at most epsilon at every corner."""
    epsilon, rows = 0.9, UnitRows.of("t ~ a + b + c + site", SCHEMA, length="fixed")
    sizes = [len(block.names) for block in rows.blocks]
    scale = np.repeat([1.0, 2.0, 1.0, 1.0, 2.0], sizes)
    radius = multiplied_bound(TAYLOR[False], rows, np.array([1.0, 2.0, 1.0, 1.0, 2.0]), 1).radius
    d = rows.size
    i, j = np.triu_indices(d)
    factor = np.concatenate([scale[i] * scale[j], scale])  # of each coefficient; its own noise is radius / epsilon / factor
    noise = radius / epsilon / factor
    plain = contributions(rows, np.ones(d))
    spent = sum(np.abs(plain[:, factor == one]).sum(1) / noise[factor == one][0] for one in np.unique(factor))
    assert spent.max() == pytest.approx(epsilon, rel=1e-12)
    twin = np.abs(plain).sum(1) / noise.min()  # as if every coefficient had the noise of the relevant ones
    assert twin.max() > 1.5 * epsilon


def test_without_noise_it_is_least_squares():
    table = people()
    for formula, times in (("t ~ a + b + site", 1.0), ("ill ~ a + b + site", 2.0)):
        fit = sufficient(hr.simulate(table, hr.data.iid(parties=3), seed=0), formula, method="relevance")
        made = unit_rows(table.columns, spec=fit.rows)
        y = made["y"] if times == 1 else 2 * made["y"] - 1
        pooled = np.linalg.lstsq(made["X"], y, rcond=None)[0]
        np.testing.assert_allclose(made["X"] @ fit.coef_, times * made["X"] @ pooled, atol=1e-8)


def test_relevances_are_charged_a_tenth():
    for more, kind in (({}, "laplace"), ({"delta": 1e-5}, "gaussian")):
        fed = hr.simulate(people(), hr.data.iid(parties=3), seed=0)
        fit = linear(fed, "t ~ a + b + c", method="relevance", epsilon=1.0, **more)
        first, second = (entry.event.noise_multiplier for entry in fed.ledger.since(0))
        assert {entry.event.kind for entry in fed.ledger.since(0)} == {kind}
        assert first / second == pytest.approx(9.0 if kind == "laplace" else 3.0)
        assert fit.spent == (pytest.approx(1.0, rel=1e-6), more.get("delta", 0.0))
        assert fit.shares == {"relevance": 0.1, "moments": 0.9}
        assert fit.rounds == 2


def test_relevant_columns_have_less_noise():
    assert relevance_factors(np.array([3.0, 1.0, 2.0, 0.5]), 2.0).tolist() == [2, 1, 2, 1]
    fed = hr.simulate(people(), hr.data.iid(parties=3), seed=0)
    first, second = relevance_moments(fed, formula="t ~ a + b + c - 1", epsilon=20.0)
    assert first.relevance.argmax() == 0
    assert first.scale[0] == 2.0
    assert (second.scale == first.scale).all()
    with pytest.raises(SettingsInvalid, match="ratio"):
        linear(fed, "t ~ a", method="relevance", ratio=0.5)
