"""Games over epsilon: Wu's as printed and mended, equilibria found and named; a well-posed one in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.market.epsilon.leakage import database_leakage, leakage_slope
from hedgerow.market.epsilon.utility import utility
from hedgerow.market.games import (
    LeakageGain,
    PublicGoodsGame,
    SeparableGame,
    UtilityGain,
    best_responses,
    best_welfare,
    deviation_gains,
    equilibria,
    leakage_game,
    paths,
    price_of_anarchy,
    uniqueness,
    utility_game,
)

STARTS = np.array([[0.2, 1.0, 2.5], [2.9, 0.05, 0.05], [0.01, 0.01, 0.01]])
EQUAL, SIZES, GIANT = (1.0, 1.0, 1.0), (1.0, 2.0, 4.0), (1.0, 1.0, 100.0)


def game_41(sizes=EQUAL, **settings):
    return leakage_game(sizes, **{"people": 10, "values": 5, "cap": 3.0} | settings)


def game_42(sizes=EQUAL, **settings):
    return utility_game(sizes, **{"distance": 3, "border": 2, "cap": 3.0} | settings)


SEPARABLE = SeparableGame((50.0, 50.0, 50.0), (1.0, 0.2, 5.0), 1e8, 3e4)
GOODS = PublicGoodsGame((50.0,) * 3, (1.0,) * 3, (1e4,) * 3, 1e8, cap=3.0)


def test_gains_are_the_leakage_and_the_utility_of_the_market():
    for e in (0.0, 0.3, 2.0, 9.0):
        at = np.array(e)
        assert LeakageGain(10, 5).value(at) == pytest.approx(database_leakage(e, 5, 10), rel=1e-12)
        assert LeakageGain(10, 5).slope(at) == pytest.approx(10 * leakage_slope(e, 5), rel=1e-12)
        assert UtilityGain(3, 2).value(at) == pytest.approx(utility(e, 3, 2), rel=1e-12)


@pytest.mark.parametrize("game", [game_41(SIZES), game_42(SIZES), game_41(SIZES, minimised=True), SEPARABLE, GOODS])
def test_slopes_are_the_derivatives_of_payoffs(game):
    e, h = np.array([0.7, 1.1, 0.4]), 1e-5
    steps = h * np.eye(3)
    slopes = [(game.payoffs(e + d) - game.payoffs(e - d))[k] / (2 * h) for k, d in enumerate(steps)]
    second = np.array([(game.own_slopes(e + d) - game.own_slopes(e - d)) / (2 * h) for d in steps]).T
    assert game.own_slopes(e) == pytest.approx(np.array(slopes), rel=1e-6)
    assert game.slopes_of_slopes(e) == pytest.approx(second, rel=1e-6, abs=1e-8)


def test_a_gain_of_utility_has_the_derivatives_it_says():
    gain, e, h = UtilityGain(4, 3), np.linspace(0, 3, 7), 1e-5
    assert gain.slope(e) == pytest.approx((gain.value(e + h) - gain.value(e - h)) / (2 * h), rel=1e-7)
    assert gain.bend(e) == pytest.approx((gain.slope(e + h) - gain.slope(e - h)) / (2 * h), rel=1e-6)


@pytest.mark.parametrize(
    ("game", "golden"),
    [
        (game_41(), [1.1366] * 3),
        (game_41(SIZES), [1.4031, 1.1442, 0.8115]),
        (game_41(GIANT), [1.4882, 1.4882, 0.0655]),
        (game_41(form="printed"), [1.1675] * 3),
        (game_41(SIZES, form="printed"), [1.4363, 1.1762, 0.8384]),
        (game_41(GIANT, form="printed"), [1.5255, 1.5255, 0.0693]),
        (game_41(form="printed", people=5), [0.2149] * 3),
        (game_41(form="printed", people=20), [1.9131] * 3),
    ],
)
def test_in_41_best_responses_from_all_starts_end_at_one_interior_equilibrium(game, golden):
    ends = paths(game, STARTS)[-1]
    assert ends == pytest.approx(np.tile(golden, (3, 1)), abs=1e-4)
    assert ends == pytest.approx(np.tile(ends[0], (3, 1)), abs=1e-9)
    assert deviation_gains(game, ends[0]).max() <= 1e-6
    assert np.abs(game.own_slopes(ends[0])).max() < 1e-7


@pytest.mark.parametrize(("sizes", "golden"), [(EQUAL, [1.0556] * 3), (SIZES, [1.2732, 0.9433, 0.4967])])
def test_in_42_it_depends_on_the_start_whether_they_end_there_or_at_zero(sizes, golden):
    """Near zero everybody closes, also among owners of the same size."""
    starts = np.vstack([STARTS, np.full(3, 2.0)])
    ends = paths(game_42(sizes), starts)[-1]
    assert ends[[0, 3]] == pytest.approx(np.tile(golden, (2, 1)), abs=1e-4)
    assert ends[2].tolist() == [0, 0, 0]
    assert deviation_gains(game_42(sizes), ends[0]).max() <= 1e-6


def test_the_symmetric_equilibrium_solves_its_equation_to_nine_digits():
    """Two thirds of the scale times the slope of g, less what the own share loses, equals e^eps."""
    game = game_41()
    e = paths(game, STARTS[:1])[-1, 0, 0]
    g, slope = game.gain.value(e), game.gain.slope(e)
    assert game.scale * (2 / 3 * slope - 2 / (9 * e) * g) == pytest.approx(np.exp(e), rel=1e-9)


def test_everybody_at_zero_is_a_second_equilibrium_of_41_and_unstable():
    found = equilibria(game_41(), STARTS, n_starts=4)
    assert [(one.kind, one.stable) for one in found] == [("interior", True), ("everybody at zero", False)]
    assert found[1].epsilons.tolist() == [0, 0, 0]
    assert found[1].payoffs.tolist() == [-1, -1, -1]  # e^0 is charged to who gives nothing
    assert max(one.deviation_gain for one in found) <= 1e-6
    assert [one.individually_rational for one in found] == [True, False]


def test_everybody_at_zero_is_a_stable_equilibrium_of_42():
    """So that "the equilibrium is unique" is false of (4.2), also for owners that tremble."""
    found = equilibria(game_42(), STARTS, n_starts=4)
    assert [(one.kind, one.stable) for one in found if one.stable] == [("interior", True), ("everybody at zero", True)]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "golden"), [(EQUAL, [0.35359] * 3), (SIZES, [1.17763, 0.80566, 0.32395])])
def test_between_the_two_stable_equilibria_of_42_lies_one_that_no_best_response_reaches(sizes, golden):
    """It parts the starts that close from those that do not; its payoffs are at their largest over a fine grid."""
    game = game_42(sizes)
    (between,) = (one for one in equilibria(game, STARTS, n_starts=2) if not one.stable)
    assert between.kind == "interior"
    assert between.epsilons == pytest.approx(golden, abs=1e-5)
    for k in range(3):
        others = np.tile(between.epsilons, (30001, 1))
        others[:, k] = np.linspace(0, 3, 30001)
        assert game.payoffs(others)[:, k].max() <= between.payoffs[k] + 1e-9
    below, above = paths(game, np.outer([0.9, 1.1], between.epsilons))[-1]
    assert below.max() < 1e-9
    assert above.min() > between.epsilons.min()


def test_what_leaves_somebody_a_gain_is_not_called_an_equilibrium():
    game = game_41()
    assert deviation_gains(game, np.full(3, 1.1)).max() > 1e-4
    assert all(np.abs(one.epsilons - 3).max() > 1 for one in equilibria(game, n_starts=2))  # everybody at the cap is none


# ---- slips: printed against mended ----------------------------------------------------------------------------------
@pytest.mark.parametrize("people", [2, 5, 10, 20])
def test_the_printed_scale_makes_the_equilibrium_a_matter_of_u_alone(people):
    """Mended, u cancels: payments are scaled to the largest cost."""
    mended = paths(game_41(people=people), STARTS[:1])[-1, 0]
    assert mended == pytest.approx([1.136589] * 3, abs=1e-6)
    printed = game_41(people=people, form="printed")
    # paid for the first bit against what the first bit costs: below 1, nobody begins
    pull = printed.scale * printed.gain.slope(np.array(0.0))
    assert pull == pytest.approx(people / np.log(2) * 0.8 * printed.gain.value(np.array(3.0)) / np.exp(3))
    if people == 2:
        assert 2 / 3 * pull == pytest.approx(0.32, abs=0.01)
        (only,) = equilibria(printed, STARTS, n_starts=4)
        assert (only.kind, only.stable) == ("everybody at zero", True)


def test_printed_scales_are_the_inverse_of_the_mended_ones():
    assert game_41(form="printed").scale == pytest.approx(1 / game_41().scale)
    assert game_42(form="factor restored").scale == pytest.approx(1 / game_42().scale)
    assert game_41().scale == pytest.approx(0.9751, abs=1e-4)  # by luck: 20.6 bits against e^3 = 20.1
    assert (game_41().scale * game_41().gain.value(np.array(3.0))) == pytest.approx(np.exp(3.0))


def test_the_factor_that_42_has_lost_lets_its_largest_utility_exceed_one():
    e = np.exp(3.0)
    lost = e**3 * (1 - e) / ((1 - e) + 2 * (1 - e**3))
    assert game_42(form="printed").scale == pytest.approx(lost / e)
    assert lost > 9
    assert game_42(form="factor restored").scale == pytest.approx(utility(3.0, 3, 2) / e)


@pytest.mark.parametrize("form", ["printed", "factor restored"])
def test_as_printed_42_leaves_everybody_at_zero(form):
    (only,) = equilibria(game_42(form=form), STARTS, n_starts=4)
    assert only.kind == "everybody at zero"


def test_the_sign_of_section_4_2_sends_everybody_to_the_cap():
    """Minimising what is paid less what it costs."""
    found = equilibria(game_41(minimised=True), STARTS, n_starts=4)
    assert [one.kind for one in found] == ["everybody at the cap"]


def test_proposition_1_needs_a_bounded_range():
    """Continuous costs on [0, infinity) may have no least value: with the sign of section 4.2 the end of any range is best."""
    for cap in (3.0, 6.0, 12.0):
        best = best_responses(game_41(minimised=True, cap=cap), 0, np.array([[0.0, 1.0, 1.0]]))
        assert best == pytest.approx([cap])
    mended = [best_responses(game_41(cap=cap), 0, np.array([[0.0, 1.0, 1.0]]))[0] for cap in (3.0, 6.0)]
    assert max(mended) < 3


def test_concave_payoffs_are_not_yet_unique_equilibria():
    """Section 4.3 concludes uniqueness from concavity; Rosen's condition holds for equal sizes, and not for 1, 1, 100."""
    equal, giant = uniqueness(game_41()), uniqueness(game_41(GIANT), n_profiles=200)
    assert equal.held
    assert equal.share == 1.0
    assert equal.largest == pytest.approx(-4.05, abs=0.01)
    assert giant.own < 0  # concave all the same
    assert not giant.held
    assert giant.largest > 10


def test_payoffs_of_42_are_not_even_concave():
    found = uniqueness(game_42(), n_profiles=200)
    assert found.own > 1
    assert not found.held
    assert found.share < 0.9


def test_payoffs_depend_on_the_others_so_that_proposition_1_does_not_apply():
    game, e = game_41(), np.array([1.0, 1.0, 1.0])
    assert best_responses(game, 0, np.array([[1.0, 0.1, 0.1], [1.0, 3.0, 3.0]])).tolist() != pytest.approx([1.0, 1.0])
    assert game.payoffs(e)[0] != game.payoffs(np.array([1.0, 2.0, 2.0]))[0]
    one, other = best_responses(game, 0, np.array([[1.0, 0.1, 0.1], [1.0, 3.0, 3.0]]))
    assert other - one > 0.3


def test_an_owner_a_hundred_times_as_large_is_paid_less_than_its_cost():
    (interior, _) = equilibria(game_41(GIANT), STARTS, n_starts=4)
    assert not interior.individually_rational
    assert interior.payoffs[2] == pytest.approx(-0.8389, abs=1e-4)
    assert interior.epsilons[2] < 0.1 * interior.epsilons[0]  # larger owners are less open


def test_the_price_of_anarchy_of_41():
    game = game_41()
    found = equilibria(game, STARTS, n_starts=1)
    best, sum_ = best_welfare(game, n_starts=1)
    assert best == pytest.approx([1.4913] * 3, abs=1e-3)
    assert price_of_anarchy(found[:1], sum_) == pytest.approx(1.0937, abs=1e-4)
    assert np.isnan(price_of_anarchy(found, sum_))  # a loss against a gain


# ---- well posed -----------------------------------------------------------------------------------------------------
def test_the_separable_game_in_closed_form():
    game = SEPARABLE
    assert game.equilibrium() == pytest.approx([1.3995, 1.9753, 0.9506], abs=5e-5)
    assert game.optimum() == pytest.approx([1.7788, 2.4400, 1.2435], abs=5e-5)
    assert game.anarchy == pytest.approx(1.1376, abs=5e-5)
    assert game.payments(game.optimum()) == pytest.approx([2.1611, 0.9815, 5.1104], abs=5e-5)
    e = game.equilibrium()
    assert e**3 * np.exp(e) == pytest.approx(2 * 1e8 * 50 / (np.array(game.costs) * 9e8), rel=1e-12)


def test_the_closed_form_is_where_best_responses_end_whatever_the_others_do():
    ends = paths(SEPARABLE, STARTS)
    assert len(ends) == 3  # one round, and one in which nobody moves
    assert ends[-1] == pytest.approx(np.tile(SEPARABLE.equilibrium(), (3, 1)), abs=1e-6)
    (only,) = equilibria(SEPARABLE, n_starts=2)
    assert only.deviation_gain <= 1e-6
    assert uniqueness(SEPARABLE, n_profiles=50).held


def test_transfers_make_the_optimum_the_equilibrium():
    paid = SeparableGame(SEPARABLE.benefits, SEPARABLE.costs, 1e8, 3e4, transfers=True)
    assert paths(paid, STARTS[:1])[-1, 0] == pytest.approx(SEPARABLE.optimum(), abs=1e-6)
    assert deviation_gains(paid, SEPARABLE.optimum()).max() <= 1e-6
    assert deviation_gains(SEPARABLE, SEPARABLE.optimum()).max() > 0.1
    assert paid.payments(SEPARABLE.equilibrium()) == pytest.approx(np.zeros(3), abs=1e-12)
    assert (paid.payoffs(SEPARABLE.optimum()) > SEPARABLE.payoffs(SEPARABLE.equilibrium())).all()


def test_the_optimum_is_the_largest_sum_of_payoffs():
    best, sum_ = best_welfare(SEPARABLE, n_starts=2)
    assert best == pytest.approx(SEPARABLE.optimum(), abs=1e-3)
    assert sum_ == pytest.approx(-SEPARABLE.social_cost(SEPARABLE.optimum()), rel=1e-8)


def test_collusion_moves_only_those_who_collude_and_only_their_benefit():
    together = SEPARABLE.colluding([0, 2]).equilibrium()
    assert together[1] == SEPARABLE.equilibrium()[1]
    assert (together[[0, 2]] > SEPARABLE.equilibrium()[[0, 2]]).all()
    assert SEPARABLE.colluding([0, 1, 2]).equilibrium() == pytest.approx(SEPARABLE.optimum())


# ---- public goods ---------------------------------------------------------------------------------------------------
def test_under_the_best_weights_three_alike_have_three_equilibria_with_one_who_rides_free_and_one_without():
    all_give, *riding = equilibria(GOODS, n_starts=4)
    assert all_give.epsilons == pytest.approx([1.399532] * 3, abs=1e-6)
    assert len(riding) == 3
    for one in riding:
        assert sorted(one.epsilons) == pytest.approx([1e-3, 1.673723, 1.673723], abs=1e-6)
        assert one.deviation_gain <= 1e-6
        assert max(one.payoffs) - min(one.payoffs) > 4  # the one who gives nothing has most


@pytest.mark.slow
def test_four_alike_have_an_equilibrium_for_every_two_or_more_of_them_who_give():
    """Each is checked apart: who gives m in number solves 100 e / (m e^2)^2 = e^e, and nobody does better on a fine grid."""
    found = equilibria(PublicGoodsGame((50.0,) * 4, (1.0,) * 4, (1e4,) * 4, 1e8), n_starts=2)
    giving = [int((one.epsilons > 0.01).sum()) for one in found]
    assert [giving.count(m) for m in range(5)] == [0, 0, 6, 4, 1]
    for m, one in zip(giving, found, strict=True):
        e, tried = one.epsilons.max(), np.linspace(1e-3, 20, 20001)
        assert 100 * e / (m * e**2) ** 2 == pytest.approx(np.exp(e), rel=1e-5)
        for given, own in (((m - 1) * e**2, e), (m * e**2, 1e-3)):
            payoffs = -50 / (np.append(own, tried) ** 2 + given) - np.expm1(np.append(own, tried))
            assert payoffs.max() <= payoffs[0] + 1e-4


@pytest.mark.slow
def test_of_six_alike_some_are_found_and_none_that_is_none():
    found = equilibria(PublicGoodsGame((50.0,) * 6, (1.0,) * 6, (1e4,) * 6, 1e8), n_starts=1)
    assert len(found) > 10
    assert max(one.deviation_gain for one in found) <= 1e-6


def test_a_game_without_a_pure_equilibrium_has_none_found():
    """One owner wants to be where the other is, and the other to be elsewhere."""

    class Pennies:
        players, lowest, cap = 2, 0.0, 1.0

        def payoffs(self, profile):
            x, y = profile[..., 0] - 0.5, profile[..., 1] - 0.5
            return np.stack([x * y + x**2, -x * y + y**2], -1)

        def own_slopes(self, profile):
            x, y = profile[..., 0] - 0.5, profile[..., 1] - 0.5
            return np.stack([y + 2 * x, -x + 2 * y], -1)

        def slopes_of_slopes(self, profile):
            return np.broadcast_to(np.array([[2.0, 1.0], [-1.0, 2.0]]), (*profile.shape, 2))

    assert equilibria(Pennies(), n_starts=2) == []


def test_the_public_goods_game_is_not_concave_near_zero():
    """Its second derivative is above 0 where an owner provides less than a quarter of the precision."""
    cheap = PublicGoodsGame((50.0,) * 3, (1e-6,) * 3, (1e4,) * 3, 1e8)
    for share, sign in ((0.24, 1), (0.26, -1)):
        e = np.array([1.0, *np.sqrt([(1 - share) / share / 2] * 2)])
        assert np.sign(cheap.slopes_of_slopes(e)[0, 0]) == sign
    assert uniqueness(GOODS).own > 0


def test_settings_that_make_no_game_are_refused():
    with pytest.raises(SettingsInvalid, match="lost no factor"):
        game_41(form="factor restored")
    with pytest.raises(SettingsInvalid, match="sizes"):
        game_41((1.0,))
    with pytest.raises(SettingsInvalid, match="benefits"):
        SeparableGame((1.0,), (1.0, 2.0), 1.0, 1.0)
    with pytest.raises(SettingsInvalid, match="records"):
        PublicGoodsGame((1.0,), (1.0,), (0.0,), 1.0)
