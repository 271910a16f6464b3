"""What an epsilon means: numbers are those of the bounds, sentences say them, nothing is said of a database."""

import math
import re

import numpy as np
import pytest

from hedgerow.errors import BudgetInvalid
from hedgerow.market.epsilon import channels
from hedgerow.market.epsilon.leakage import leakage
from hedgerow.market.epsilon.meaning import BEYOND, count_error, meaning
from hedgerow.market.epsilon.meaning_page import AccuracyCost, curves_of, grids_of, page
from hedgerow.market.epsilon.posterior import advantage, chance_beyond, gaussian_advantage, posterior
from hedgerow.privacy.accounting import gaussian_epsilon
from hedgerow.report import Grid, Report, render


def test_of_a_pure_epsilon():
    m = meaning(1.0)
    assert m.odds == pytest.approx(math.e)
    assert (m.beyond, m.noise_multiplier, m.gaussian_advantage) == (0.0, None, None)
    assert [(b.prior, round(b.most, 4)) for b in m.beliefs] == [(0.01, 0.0267), (0.1, 0.232), (0.5, 0.7311)]
    assert m.beliefs[2].times == pytest.approx(1.462117, abs=5e-7)
    assert m.beliefs[0].times == 1.0
    assert m.presence.bits == pytest.approx(0.548059, abs=5e-7)
    assert [leak.bits for leak in m.leaks] == [leakage(2.0, 2), leakage(2.0, 10)]  # two values are two steps apart
    assert [leak.bits for leak in meaning(1.0, adjacency="replace-one").leaks] == [leakage(1.0, 2), leakage(1.0, 10)]


def test_with_delta_odds_and_beliefs_hold_but_for_a_probability():
    m = meaning(1.0, 1e-5)
    assert m.odds == pytest.approx(BEYOND * math.e)
    assert m.beyond == chance_beyond(1.0, 1e-5, BEYOND) == pytest.approx(1.1e-4)
    assert m.beliefs[0].most == posterior(0.01, 1.0 + math.log(BEYOND))
    assert gaussian_epsilon(m.noise_multiplier, 1e-5) == pytest.approx(1.0, abs=1e-9)
    assert m.advantage == advantage(1.0, 1e-5)
    assert m.gaussian_advantage == gaussian_advantage(m.noise_multiplier) < m.advantage / 4
    assert "a factor of at most 2.99, but for a probability of at most 0.00011" in m.sentences[0]
    assert any("no more than 55.3" in sentence for sentence in m.sentences)


def test_the_probability_is_true_of_gaussian_noise():
    m = meaning(1.0, 1e-5)
    losses = np.linspace(-5, 5, 200001)  # the release, in deviations of the noise, where the person is there
    loss = losses / m.noise_multiplier + 0.5 / m.noise_multiplier**2
    weights = np.exp(-np.square(losses) / 2)
    assert weights[loss > math.log(m.odds)].sum() / weights.sum() <= m.beyond


def test_sentences_have_the_numbers_of_the_tables():
    m = meaning(3.0, adjacency="replace-one")
    said = " ".join(m.sentences)
    for number in ("20.09", "16.9 %", "69.1 %", "95.3 %", "95.3 rightly", "0.93 of one bit"):
        assert number in said
    assert "has one datum rather than another" in said
    assert "took part by" not in said
    assert "Findings about people in general are not hidden" in said


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.0, 1e-6), (1e-9, 0.0), (25.0, 1e-6), (800.0, 0.0), (800.0, 1e-6)]
)
def test_extreme_epsilons_have_sentences_tables_and_pages(epsilon, delta):
    m = meaning(epsilon, delta)
    assert m.weak == (epsilon > 20)
    assert ("promises hardly anything" in m.sentences[0]) == m.weak
    assert 0 <= m.advantage <= 1
    assert all(b.least * (1 - 1e-12) <= b.prior <= b.most * (1 + 1e-12) for b in m.beliefs)
    assert not re.search(r"\bnan\b|\binf\b", render(page([m])))
    assert (m.count_error is None) == (epsilon == 0)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 20.0])
def test_the_error_of_a_count_is_the_least_that_holds(epsilon):
    k, q = count_error(epsilon), math.exp(-epsilon)
    beyond = 2 * q ** (np.array([k, k + 1])) / (1 + q)  # P(noise beyond k - 1), P(noise beyond k)
    assert beyond[1] <= 0.05
    assert k == 0 or beyond[0] > 0.05
    row = channels.truncated_geometric(2 * k + 2, epsilon)[k + 1]
    assert row[1:-1].sum() >= 0.95


def test_a_party_is_called_a_party():
    one, several = meaning(1.0, 1e-6, unit="party"), [meaning(e, unit="party") for e in (1.0, 2.0)]
    for made in (page([one]), page(several)):
        assert "person" not in " ".join(re.findall(r"[a-z]+", render(made).lower()))
    assert "that one given party took part" in one.sentences[0]
    assert "A party is protected as a whole, with all its records." in one.sentences
    assert "for somebody with several the epsilons add up" in meaning(1.0).sentences[-2]


def test_no_number_grows_with_a_database():
    texts = [render(page([meaning(e, 1e-6) for e in es])) for es in ([1.0], [0.5, 2.0])]
    for text in texts:
        bits = [float(x) for x in re.findall(r"([\d.]+) bits", text)]
        assert all(x < 4 for x in bits)
        assert "per person" in text


def test_tables_of_one_and_of_several():
    one, several = grids_of([meaning(1.0, 1e-5)]), grids_of([meaning(e, 1e-5) for e in (0.1, 1.0, 10.0)])
    assert [grid.rows[0][0] for grid in one] == ["1 %", "0.1 %", "there or not"]
    assert one[1].rows[-1] == ("advantage", "46.2 %", "10.7 %")
    assert one[2].rows[0][1:] == (0.5481, 1.0, 1.462)
    assert [row[0] for row in several[0].rows] == ["0.1", "1", "10"]
    assert several[0].rows[1][1:] == ("2.99", "2.93 %", "24.9 %", "74.9 %", "73.1", "55.3")
    assert several[1].rows[1][1:] == (0.5481, 0.8169, 2.1727, 3)


def test_curves_pass_through_the_numbers():
    m = meaning(0.7, 1e-6, priors=(0.2,), values=(5,))
    beliefs, attacks, bits, utility, trade_off = curves_of([m])
    at = beliefs.series[0].x.index(0.7)
    assert beliefs.series[0].y[at] == pytest.approx(100 * m.beliefs[0].most)
    assert [series.y[at] for series in attacks.series] == [m.advantage, m.gaussian_advantage]
    assert [series.y[at] for series in bits.series] == [m.presence.bits, m.leaks[0].bits]
    assert [round(series.y[at], 6) for series in utility.series[:2]] == [0.431179, 0.366129]
    assert [series.name for series in trade_off.series] == ["epsilon 0.7, at most", "epsilon 0.7, Gaussian noise", "chance"]


def test_a_page_says_what_a_study_loses():
    cost = AccuracyCost("It loses little.", (Grid("What it loses", ("epsilon", "loss"), (("1", 0.5),)),))
    made = page([meaning(1.0)], cost)
    assert "It loses little." in made.warnings
    assert made.tables[0].title == "What it loses"
    assert Report.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    "call",
    [
        lambda: meaning(-1.0),
        lambda: meaning(math.inf),
        lambda: meaning(1.0, 2.0),
        lambda: meaning(1.0, adjacency="swap"),
        lambda: meaning(1.0, priors=(0.0,)),
        lambda: meaning(1.0, values=(1,)),
    ],
)
def test_refuses(call):
    with pytest.raises(BudgetInvalid):
        call()
