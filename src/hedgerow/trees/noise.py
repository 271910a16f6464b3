"""What noise a tree's questions meet: the ball that fits its law, and its standard deviation, which is public.

A record adds to a histogram of every feature. Gaussian noise is scaled by its l2 length there, Laplace and geometric noise by
its l1 length, which is the square for ones: a bound has one norm, so a program declares the one that the channel's noise needs.
Noise that is scaled by an l1 length of 1 is wrong where a record is counted f times.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hedgerow.core.bound import Bound, l1
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.whole import in_steps
from hedgerow.errors import BudgetInvalid, UnlawfulChannel
from hedgerow.privacy.level import noise_level

from .bins import root_bound


def ball(
    federation: Federation, times: int, heaviest: float = 1.0, squares: Fraction | float = 1.0, most: Fraction | float = 1.0
) -> Bound:
    """The bound, per record, of what it adds to `times` places, in the norm of the federation's noise.

    A length that was rounded down would shorten what records add, and is rounded up.

    Parameters
    ----------
    heaviest : float
        Largest weight of a record.
    squares, most : Fraction or float
        Largest sum of squares, and of absolute values, of what a record of weight one adds to a place.
    """
    if federation.protection.law not in ("laplace", "geometric"):
        return root_bound(times * Fraction(squares), heaviest)
    exact = times * Fraction(most) * Fraction(heaviest)
    length = float(exact)
    return l1(length if Fraction(length) >= exact else math.nextafter(length, math.inf), "record")


def deviation(federation: Federation, bound: Bound | None, size: int) -> float:
    """Standard deviation of the noise in each of `size` numbers of the next question of a federation; zero without noise.

    It follows from the channel, the bound and the parties that are expected to add noise, or shares of it, and not from data.

    Raises
    ------
    BudgetInvalid (HR-214)
        The mechanism adds no noise to numbers.
    """
    return 0.0 if bound is None else noise_level(federation, in_steps(bound), "", size)


def refuse_whole_noise(federation: Federation, what: str) -> None:
    """Refuse noise on whole numbers, before the first question, where a later one adds what is none.

    Raises
    ------
    BudgetInvalid (HR-214)
    """
    if federation.protection.law in ("geometric", "discrete gaussian"):
        raise BudgetInvalid(
            f"{federation.protection.mechanism} is noise on whole numbers, and {what} are no whole numbers.",
            remedy="Use Laplace or Gaussian, whose grid is finer.",
        )


def refuse_choices_elsewhere(noise_at: Position) -> None:
    """Refuse choices anywhere but at the server.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if noise_at != "server":
        raise UnlawfulChannel(
            f"noise_at={noise_at!r}, and choices compare exact counts, which the server has to see.",
            remedy="Leave noise_at out; or take random_trees, or private_forest with vote='counts', whose leaves are sums.",
        )
