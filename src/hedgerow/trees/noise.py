"""What noise a tree's questions meet: the ball that fits its law, and its standard deviation, which is public.

A record adds to a histogram of every feature. Gaussian noise is scaled by its l2 length there, Laplace and geometric noise by
its l1 length, which is the square for ones: a bound has one norm, so a program declares the one that the channel's noise needs.
Noise that is scaled by an l1 length of 1 is wrong where a record is counted f times.
"""

from __future__ import annotations

import math
from fractions import Fraction

from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.errors import UnlawfulChannel


def ball(federation: Federation, times: int, radius: float = 1.0, most: float | None = None) -> Bound:
    """The bound, per record, of what it adds to `times` places, in the norm of the federation's noise.

    A root that was rounded down would shorten what records add, and is rounded up.

    Parameters
    ----------
    radius : float
        Largest Euclidean length of what it adds to a place.
    most : float, optional
        Largest sum of absolute values there, where it adds several numbers.
    """
    if federation.protection.law in ("laplace", "geometric"):
        return l1(times * (radius if most is None else most), "record")
    length, exact = radius * math.sqrt(times), times * Fraction(radius) ** 2
    return l2(length if Fraction(length) ** 2 >= exact else math.nextafter(length, math.inf), "record")


def deviation(federation: Federation, bound: Bound) -> float:
    """Standard deviation of the noise in each number of the last question of a federation; zero where there was none.

    It follows from the channel and the bound alone. Noise of every party by itself adds up.
    """
    if not federation.protection.noisy or not federation.ledger.entries:
        return 0.0
    event, clip = federation.ledger.entries[-1].event, federation.protection.clip
    radius = clip.radius if isinstance(clip, Bound) else bound.radius
    several = math.sqrt(federation.expected_size) if federation.protection.noise_at == "party" else 1.0
    if event.kind == "laplace":
        return math.sqrt(2) * event.noise_multiplier * radius * several
    if event.kind == "pure":
        return math.sqrt(2) / event.epsilon * radius * several
    return event.noise_multiplier * radius * several


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
