"""`hedgerow privacy`: epsilons, noise, rounds and compositions, as printed."""

import re

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import accounting

HOW = {"adjacency": "add-remove"}


def said(*arguments):
    ended = CliRunner().invoke(app, ["privacy", *map(str, arguments)], env={"COLUMNS": "160"})
    assert ended.exit_code == 0, ended.exception
    return re.sub(r"\s+", " ", ended.output)


def refused(*arguments):
    ended = CliRunner().invoke(app, ["privacy", *map(str, arguments)])
    assert isinstance(ended.exception, BudgetInvalid)
    assert ended.exception.remedy
    return str(ended.exception)


@pytest.mark.slow
def test_epsilon_of_a_published_run_by_every_accountant():
    told = said("epsilon", "--noise-multiplier", 4, "--sampling-rate", 0.01, "--rounds", 10000, "--delta", 1e-5)
    for name, value in (("moments", "1.25857"), ("rdp", "1.03549"), ("pld", "0.946999")):
        assert f"{name} │ {value}" in told
    assert re.search(r"pld [^│]*│ 0\.946999 │ [^│]*<- reported", told)
    assert told.count("<- reported") == 1
    assert "10000 rounds, gaussian noise, Poisson sampling at rate 0.01, add-remove adjacency" in told
    assert "by a factor of at most 2.578, except with probability about 1e-05" in told


@pytest.mark.slow
def test_noise_that_is_printed_keeps_the_budget():
    told = said("noise", "--epsilon", 2, "--delta", 1e-5, "--rounds", 1000, "--sampling-rate", 0.01)
    z = float(re.search(r"noise multiplier ([\d.]+)", told)[1])
    charge = accounting.charge_of(z, rate=0.01)
    assert 1.999 < accounting.epsilon([charge] * 1000, delta=1e-5, **HOW) <= 2.0


def test_noise_of_everybody_is_the_exact_one():
    told = said("noise", "--epsilon", 1, "--delta", 1e-5)
    z = float(re.search(r"noise multiplier ([\d.]+)", told)[1])
    assert 0 <= z - accounting.gaussian_noise(1.0, 1e-5) < 5e-4
    assert "no sampling" in told


def test_rounds_of_a_budget_and_what_is_left():
    told = said("rounds", "-z", 30, "--epsilon", 2, "--delta", 1e-5, "--spent", 100)
    most = accounting.most_rounds(30.0, epsilon=2.0, delta=1e-5)
    assert f"{most} rounds, of which {most - 100} are left" in told
    assert "of 2 at delta 1e-05" in told
    assert said("rounds", "-z", 0.1, "--epsilon", 1, "--delta", 1e-5).startswith("0 rounds: z = 0.1")


def test_comparison_of_noise_has_every_composition_and_a_page(tmp_path):
    page = tmp_path / "compare.html"
    told = said("compare", "--epsilon", 1, "--delta", 1e-5, "--rounds", 100, "--out", page)
    for name, ratio in (("basic", "9.7 x"), ("advanced", "5.4 x"), ("zcdp", "1.31 x"), ("rdp", "1.08 x"), ("pld", "1 x")):
        assert re.search(rf"{name} │ [\d.]+ │ {re.escape(ratio)}", told), name
    written = page.read_text(encoding="utf-8")
    assert written.count("<path") >= 3
    assert "Epsilon as rounds go by" in written
    assert "A plan, not a release" in written


def test_comparison_of_epsilons_at_a_noise():
    told = said("compare", "-z", 40, "--delta", 1e-5, "--rounds", 100, "--law", "laplace")
    assert re.search(r"basic │ 2\.5 │", told)
    assert re.search(r"tightest │ [\d.]+ │ 1 x │ the least of them", told)


@pytest.mark.slow
def test_fixed_cohorts_say_that_they_do_not_amplify():
    told = said("epsilon", "-z", 9, "--delta", 1e-5, "--sampling", "fixed", "--sampling-rate", 0.1)
    assert "no amplification, twice the distance" in told
    exchanged = said("noise", "-e", 4, "-d", 1e-5, "-T", 3, "--sampling", "fixed", "-q", 0.1, "--adjacency", "replace-one")
    assert "which of two data a unit has" in exchanged


def test_no_noise_claims_no_epsilon():
    assert "No epsilon is claimed" in said("epsilon", "-z", 0, "--delta", 1e-5)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("epsilon", "-z", 1, "--delta", 2), "delta 2"),
        (("epsilon", "-z", -1, "--delta", 1e-5), "noise multiplier -1"),
        (("epsilon", "-z", 1, "--delta", 1e-5, "--sampling-rate", 1.5), "sampling rate 1.5"),
        (("epsilon", "-z", 1, "--delta", 1e-5, "--sampling", "poison"), "poison"),
        (("epsilon", "-z", 1, "--delta", 1e-5, "--adjacency", "swap"), "swap"),
        (("epsilon", "-z", 1, "--delta", 1e-5, "--law", "gausian"), "gausian"),
        (("noise", "-e", 1, "--delta", 1e-5, "--rounds", 0), "0 rounds"),
        (("noise", "-e", 1, "--delta", 1e-5, "--accountant", "pdl"), "pdl"),
        (("noise", "-e", -1, "--delta", 1e-5), "epsilon -1"),
        (("rounds", "-z", 1, "-e", 1, "--delta", 1e-5, "--spent", -1), "-1 rounds"),
        (("compare", "--delta", 1e-5), "name one"),
        (("compare", "--delta", 1e-5, "-z", 1, "-e", 1), "name one"),
    ],
    ids=str,
)
def test_refuses_with_value_and_remedy(arguments, word):
    assert word in refused(*arguments)
