"""The page on audits: its example runs, and its tables of power are what the functions say."""

import re
from pathlib import Path

import pytest

from hedgerow.attacks import NoiseLaw, power_of_law, power_of_scores
from hedgerow.core.events import Event
from hedgerow.privacy.accounting import gaussian_noise

PAGE = (Path(__file__).parents[2] / "docs" / "audits.md").read_text(encoding="utf-8")


def rows(header):
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield [[float(number.replace(",", "")) for number in cell.split(", ")] for cell in line.strip("| ").split(" | ")]


@pytest.mark.slow
def test_the_example_runs_and_says_what_was_charged(capsys):
    (code,) = re.findall(r"(?s)```python\n(.*?)```", PAGE)
    exec(code, {})
    said = capsys.readouterr().out
    assert "RED at level 0.001" in said
    assert "50 canaries at level 0.001 would see half the noise 1.00" in said


@pytest.mark.slow
def test_the_power_of_scores_is_that_of_the_table():
    found = list(rows("epsilon | mu"))
    assert [row[0] for row in found] == [[0.5], [1], [2], [4], [8]]
    for (epsilon,), (mu,), *powers, (half,), (root,) in found:
        exact = 1 / gaussian_noise(epsilon, 1e-5)
        assert mu == pytest.approx(exact, abs=5e-4)
        for canaries, told in zip((100, 400, 2000), powers, strict=True):
            power = power_of_scores(canaries // 2, canaries // 2, exact)
            right = [power.against(0.5), power.against(0.5**0.5), power.against(1.0, 3.0)]
            assert told == pytest.approx(right, abs=5.1e-3)
        assert [half, root] == [power.canaries_for(0.95, 0.5), power.canaries_for(0.95, 0.5**0.5)]


def test_the_power_of_what_is_left_is_that_of_the_table():
    for (numbers,), *powers in rows("numbers of a release"):
        for releases, told in zip((1, 20, 200), powers, strict=True):
            power = power_of_law(10, [NoiseLaw.of(Event("gaussian", 1.0))] * releases, int(numbers))
            assert told == pytest.approx([power.by_noise(noise) for noise in (0.9, 0.5**0.5, 0.5)], abs=5.1e-3)
