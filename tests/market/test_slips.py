"""Each slip of Wu 2019 that docs/forecasts.md lists is told apart from what is right, at the numbers that the page prints."""

import re
import tomllib
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hedgerow.learn.queries.steps import Steps
from hedgerow.market import PilotEstimate, propagate
from hedgerow.market.epsilon import channels
from hedgerow.market.epsilon.leakage import between_values, database_leakage, leakage, min_entropy
from hedgerow.market.epsilon.posterior import posterior_of_worlds
from hedgerow.market.epsilon.utility import utility
from hedgerow.market.forecasts.theorems import (
    distance,
    distance_printed,
    noise_of,
    theorem_3_printed,
    travelled,
    zeta_claimed,
    zetas,
)
from hedgerow.market.games import (
    LeakageGain,
    best_responses,
    deviation_gains,
    equilibria,
    leakage_game,
    paths,
    utility_game,
)

PAGE = (Path(__file__).parents[2] / "docs" / "forecasts.md").read_text(encoding="utf-8")
ROWS = {
    cells[3].strip("`"): cells
    for line in PAGE.partition("## Where the thesis errs")[2].partition("\n## ")[0].splitlines()
    if len(cells := [cell.strip() for cell in line.strip("| ").split(" | ")]) == 4 and cells[3].startswith("`test_")
}
TWO = PilotEstimate(np.diag([0.075, 0.21]), np.array([0.5, -0.3]), 0.024, np.eye(2), "made")
CAP = 3.0


@pytest.fixture
def told(request):
    """Fail unless the row of this test prints both numbers, which differ."""
    example = ROWS[request.node.name][2]

    def numbers(printed, right, *further):
        assert printed != right
        for number in (printed, right, *further):
            assert re.search(rf"(?<![\d.]){re.escape(f'{number:.4g}')}(?![\d]|\.\d)", example), f"{number:.4g} in {example!r}"

    return numbers


def test_each_slip_of_the_page_has_its_test_here():
    assert len(ROWS) > 18
    here = {name for name in globals() if name.startswith("test_")} - {"test_each_slip_of_the_page_has_its_test_here"}
    assert set(ROWS) == here


# ---- chapter 2: leakage, utility, posteriors ----------------------------------------------------------------------


def test_min_entropy_of_a_secret_knows_no_answer(told):
    prior, channel = np.array([0.5, 0.5]), channels.randomised_response(2, 1.0)
    after = -np.log2(channels.success(channel, prior))  # of the secret given the answer; printed for the secret itself
    told(after - after, min_entropy(prior) - after)


def test_leakage_counts_bits(told):
    told(np.log(2) * 2 * np.e / (1 + np.e), leakage(1.0, values=2))
    assert leakage(1.0, values=2) == pytest.approx(channels.capacity(channels.randomised_response(2, 1.0)), abs=1e-12)
    slope = (database_leakage(0.5 + 1e-6, 5, 10) - database_leakage(0.5 - 1e-6, 5, 10)) / 2e-6
    assert slope == pytest.approx(10 / np.log(2) * 4 / (4 + np.exp(0.5)), rel=1e-6)  # the thesis's slope is that of bits


def utility_as_printed(n, c, epsilon, kept=1):
    e = np.exp(epsilon)
    return e**n * (1 - e) / (e ** (n * kept) * (1 - e) + c * (1 - e**n))


def test_utility_at_epsilon_zero_is_a_guess(told):
    with np.errstate(invalid="ignore", over="ignore"):
        told(utility_as_printed(3, 2, np.float64(0.0)), utility(0.0, distance=3, border=2))
        assert np.isnan(utility_as_printed(1000, 2, np.float64(1.0)))
    assert utility(1.0, distance=1000, border=2) == pytest.approx(1 / (1 + 2 / (np.e - 1)), rel=1e-12)
    guessed = channels.success(channels.by_distance(channels.ring(7), 0.7))
    assert utility(0.7, distance=3, border=2) == pytest.approx(guessed, abs=1e-12)
    assert utility_as_printed(3, 2, 0.7) == pytest.approx(guessed, abs=1e-12)


def test_a_posterior_depends_on_epsilon(told):
    heard = channels.randomised_response(4, 0.1)[:, 0]
    told(1 / (1 + 3 * np.exp(-np.e)), posterior_of_worlds(4, 0.1))
    assert posterior_of_worlds(4, 0.1) == pytest.approx(heard[0] / heard.sum(), abs=1e-12)


def test_beliefs_over_all_worlds_add_up_to_one(told):
    heard = channels.randomised_response(4, 1.0)[:, 0]
    others = heard / (heard.sum() - heard)
    told(others[0], posterior_of_worlds(4, 1.0))
    assert others.sum() > 1.5
    assert posterior_of_worlds(4, 1.0) == pytest.approx(heard[0] / heard.sum(), abs=1e-12)


def test_worlds_that_lack_one_person_each_differ_by_two_steps(told):
    at = np.linspace(-20, 20, 4001)  # of two people, with the values 1 and -1, one is missing; a sum with Laplace noise
    lacks_first, lacks_second = np.exp(-abs(at + 1)), np.exp(-abs(at - 1))  # scale 1: epsilon 1 where a record is added
    between, _ = between_values(1.0, 0.0, "add-remove")
    told(posterior_of_worlds(2, 1.0), posterior_of_worlds(2, between))
    assert (lacks_first / (lacks_first + lacks_second)).max() == pytest.approx(posterior_of_worlds(2, between), abs=1e-12)


# ---- chapter 3 and its proofs -------------------------------------------------------------------------------------


def test_densities_of_answers_to_questions_that_follow_answers(told):
    scale = 2 * 2 / 1.0  # Xi 1, T 2, one record, epsilon 1; the gradient of a record x is x times the sign of theta

    def lost(first, second):
        theta = 1 - first  # the second question follows the first answer
        signs = 1.0, np.sign(theta)
        return sum(abs(y + s) - abs(y - s) for y, s in zip((first, second), signs, strict=True)) / scale  # x = 1, x = -1

    grid = np.linspace(-6, 6, 97)
    most = max(lost(a, b) for a in grid for b in grid)
    told(np.exp((abs(-1) - abs(1)) / scale) ** 2, np.exp(most))
    assert most == pytest.approx(1.0, abs=1e-12)


def test_noise_adds_half_the_curvature_in_each_coordinate(told):
    curvature, step = 10.0, 0.1
    corners = np.array(list(product((-1.0, 1.0), repeat=3)))  # noise of variance 1 in each of three coordinates, at theta = 0
    told(step**2, np.mean(curvature / 2 * np.square(step * corners).sum(1)))


def test_steps_of_algorithm_1_end_before_the_gradient_does(told):
    steps, theta = Steps("algorithm-1"), 1.0
    for k in range(1, 101):
        theta -= steps.length(k, 100) * theta  # f = theta^2 / 2, no noise
    told(0.5, theta**2)
    assert travelled(1.0, 100) == pytest.approx(sum(steps.length(k, 100) for k in range(1, 101)), rel=1e-12)
    assert travelled(1.0, 100) < (1 + np.log(100)) / 100**2


def test_strong_convexity_lowers_what_lies_between(told):
    between, ends = 0.5**2 / 2, 0.5 * 1**2 / 2  # f = theta^2 / 2 at 1/2; halves of its values at 0 and 1
    told(ends - 0.5 * 0.5 * (0.5 - 1), ends - 0.5 * 0.5 * (1 - 0.5))
    assert ends - 0.5 * 0.5 * (1 - 0.5) == pytest.approx(between)
    for theta in (
        0.1,
        1.0,
        3.0,
    ):  # of f = theta^2 / 2 + theta^4, whose convexity is 1: twice f - f* is enough, (A.2) says four times
        assert theta**2 <= 2 * (theta**2 / 2 + theta**4)


def test_a_distance_carries_the_whole_rest(told):
    rest, said = 0.1, distance_printed(0.0, 1.0, 1.0, 1.0, [1.0], slack=0.1)  # without noise, convexity 1
    told(said["printed"], said["mended"], said["appendix"])
    theta = np.sqrt(2 * rest)  # f = theta^2 / 2 exceeds its least value by just the rest
    assert said["printed"] < theta**2 <= distance(rest, 1.0) <= said["mended"]


def test_excess_remains_however_large_epsilon(told):
    found = propagate(TWO, Steps(size=3.0), 100)
    told(0.0, found.excess(0.0))
    assert found.excess(1e-12) == pytest.approx(found.bias, rel=1e-6)


def test_weights_of_the_average_grow_faster_than_printed(told):
    told(zeta_claimed(100), np.diff(zetas(100)).max())
    assert zetas(100).sum() == pytest.approx(1, abs=1e-12)
    product = [1.1 / (0.1 + k) * np.prod([(m - 1) / (0.1 + m) for m in range(k + 1, 101)]) for k in range(1, 101)]
    assert zetas(100) == pytest.approx(np.array(product), rel=1e-12)


def test_excess_falls_with_the_square_of_the_records(told):
    found, epsilons = propagate(TWO, Steps(size=3.0), 100), [0.1, 0.1, 10.0]
    noise = [found.excess(noise_of(4.0, 100, n, epsilons)) - found.bias for n in (1e5, 2e5)]
    printed = [theorem_3_printed(1.0, 4.0, n, epsilons) for n in (1e5, 2e5)]
    told(printed[0] / printed[1], noise[0] / noise[1])


def test_theorem_2_is_no_line_of_algorithm_2(told):
    noise = [propagate(TWO, Steps(size=3.0), T).amplification * noise_of(4.0, T, 1e5, [1.0] * 3) for T in (100, 200)]
    told(1.0, noise[1] / noise[0])


# ---- chapter 4: games ---------------------------------------------------------------------------------------------


def game(form, people, values=5):
    return leakage_game((1.0, 1.0, 1.0), people=people, values=values, cap=CAP, form=form)


def meeting(form, people, values=5):
    """Where three equal owners end who answer each other."""
    ends = paths(game(form, people, values), np.array([[0.2, 1.0, 2.5]]))[-1, 0]
    assert np.ptp(ends) < 1e-6
    return ends[0]


def test_who_minimises_v_gives_everything(told):
    grid = np.linspace(0.01, 20, 2000)
    leaked = LeakageGain(10, 5).value(grid)
    told(grid[np.argmin(1 / grid**2 - leaked)], round(grid[np.argmax(leaked - np.exp(grid))], 2))  # wf U - L with wf 1


def test_a_continuous_cost_may_have_no_least_value(told):
    grid = np.linspace(0, 20, 20_001)
    growing = np.exp(-grid) + np.expm1(grid) / 10
    told(grid[np.argmin(np.exp(-grid))], grid[np.argmin(growing)])
    for cap in (5.0, 10.0):
        below = grid <= cap
        assert grid[below][np.argmin(np.exp(-grid[below]))] == cap
        assert grid[below][np.argmin(growing[below])] == pytest.approx(np.log(10) / 2, abs=1e-3)


def test_concave_payoffs_may_have_two_equilibria(told):
    played = game("mended", 10)
    found = {one.kind: one for one in equilibria(played, n_starts=3)}
    told(1, len(found), found["interior"].epsilons[0])
    assert set(found) == {"interior", "everybody at zero"}
    assert max(deviation_gains(played, one.epsilons).max() for one in found.values()) <= 1e-6
    assert found["interior"].stable
    assert not found["everybody at zero"].stable


def test_a_reply_follows_the_others(told):
    told(*best_responses(game("mended", 10), 0, np.array([[0.0, 0.5, 0.5], [0.0, 2.0, 2.0]])))


def test_a_payment_is_scaled_to_its_cost(told):
    mended = meeting("mended", 5)
    told(meeting("printed", 5), mended, meeting("printed", 20))
    assert meeting("printed", 2) == pytest.approx(0.0, abs=1e-9)
    assert meeting("mended", 20) == pytest.approx(mended, abs=1e-6)


def test_a_utility_is_at_most_one(told):
    most = {
        form: utility_game((1.0, 1.0), distance=3, border=2, cap=CAP, form=form).scale * np.exp(CAP)
        for form in ("printed", "factor restored")
    }
    told(most["printed"], utility(CAP, distance=3, border=2))
    assert most["printed"] == pytest.approx(utility_as_printed(3, 2, CAP, kept=0), rel=1e-12)
    assert most["factor restored"] == pytest.approx(utility(CAP, distance=3, border=2), rel=1e-12)


def test_figures_of_games_name_what_they_were_drawn_with(told):
    program = tomllib.loads((files("hedgerow.papers.wu") / "wu-games.toml").read_text(encoding="utf-8"))["program"]
    named = [name for name in ("people", "values", "distance", "border", "cap", "starts") if name in program]
    told(0, len(named), meeting("mended", program["people"], 2), meeting("mended", program["people"], program["values"]))
