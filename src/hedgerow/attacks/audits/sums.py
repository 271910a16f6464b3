"""What a law test needs of releases, added up as they come: no row and no score is kept.

Of a release y is what was released less what is known, over the standard deviation that was charged, and g what of it the
canaries are, if they have the length that was charged. Right code has y = g + independent noise of one standard deviation.

    moments   sum of (y, g)' (y, g), 2 x 2: sum y y, sum y g and sum g g, over all numbers of all releases
    pairs     the same of each release and the one after it, in disjoint pairs
    along, known, took_part    three numbers of each release
    squares, moved, sketches    of releases of each size: squares of each number, products with itself moved, 64 weighted sums
    draws     how many canaries were drawn in each release, and how often each of them was
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .sightings import Sighting


@dataclass
class Draws:
    """How often canaries were drawn with one probability.

    Attributes
    ----------
    rate : float
        As accounted.
    drawn, asked : int
        Canaries in samples, and canaries that could have been, in all releases.
    releases : list of int
        Canaries in the sample of each release to which all of them could be drawn, each by itself.
    canaries : array of int, shape (canaries,)
        In how many of these each was.
    """

    rate: float
    canaries: Array
    drawn: int = 0
    asked: int = 0
    releases: list[int] = field(default_factory=list)

    def add(self, joined: Array, there: Array, *, alone: bool) -> None:
        """Add a release; `alone` where each canary was drawn by itself, rather than so many of them."""
        self.drawn, self.asked = self.drawn + int(joined[there].sum()), self.asked + int(there.sum())
        if alone and there.all():
            self.releases.append(int(joined.sum()))
            self.canaries = self.canaries + joined


@dataclass
class LawSums:
    """Sums over releases, from which `law_test` computes everything.

    Attributes
    ----------
    moments : array of shape (2, 2)
    pairs : array of shape (3, 2, 2)
        Of first and second releases, of first ones with themselves, and of second ones.
    paired : int
        Numbers in each part of the pairs.
    along, known, took_part : list of float
        As `Sighting` has them, of releases in which something was known.
    sized : dict of int to int
        Releases of each size, where all their numbers were given.
    squares, moved : dict of int to array of shape (size,)
        Of these, sums over releases of the square of each number that is left, and of its products with the number 0, 1, 2, ...
        places behind it, summed over places.
    sketches : dict of int to list of array of shape (2, at most 64)
        Weighted sums of y and of g.
    draws : list of Draws
        One for each accounted probability.
    directions, releases, canaries : int
        Numbers of all releases, releases, and canaries.
    kurtosis, normal
        Of the noise: the largest of all releases, and whether all of them are normal.
    information : float
        Sum over releases of one over the squared deviation of the noise, in units of the bound's radius.
    uncharged : tuple of str
        Releases that the ledger does not hold with their sampling and event.
    charged : bool
        Whether releases were looked up in the ledger.
    whole : bool
        Whether each canary was in all releases or in none.
    longest : float
        The longest contribution of a canary that was asked about alone, over its bound; 0 where none was.
    """

    moments: Array = field(default_factory=lambda: np.zeros((2, 2)))
    pairs: Array = field(default_factory=lambda: np.zeros((3, 2, 2)))
    paired: int = 0
    along: list[float] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    took_part: list[float] = field(default_factory=list)
    sized: dict[int, int] = field(default_factory=dict)
    squares: dict[int, Array] = field(default_factory=dict)
    moved: dict[int, Array] = field(default_factory=dict)
    sketches: dict[int, list[Array]] = field(default_factory=dict)
    draws: list[Draws] = field(default_factory=list)
    directions: int = 0
    releases: int = 0
    canaries: int = 0
    kurtosis: float = 3.0
    normal: bool = True
    information: float = 0.0
    whole: bool = True
    longest: float = 0.0
    charged: bool = False
    uncharged: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._present: Array | None = None
        self._before: Array | None = None

    @classmethod
    def of(cls, sightings: Iterable[Sighting], rate: float | None = None) -> LawSums:
        """Of sightings in their order, each canary in a release with this probability where one is given."""
        found = cls()
        for one in sightings:
            found.add(one, rate=rate)
        return found

    @classmethod
    def over(cls, runs: Sequence[LawSums]) -> LawSums:
        """Of several runs, each with canaries and noise of its own."""
        found = cls(
            moments=np.sum([one.moments for one in runs], axis=0),
            pairs=np.sum([one.pairs for one in runs], axis=0),
            kurtosis=max(one.kurtosis for one in runs),
            normal=all(one.normal for one in runs),
            whole=all(one.whole for one in runs),
            charged=any(one.charged for one in runs),
            uncharged=tuple(dict.fromkeys(each for one in runs for each in one.uncharged)),
            longest=max(one.longest for one in runs),
            information=math.fsum(one.information for one in runs),
        )
        for name in ("paired", "directions", "releases", "canaries"):
            setattr(found, name, sum(getattr(one, name) for one in runs))
        for name in ("along", "known", "took_part", "draws"):
            setattr(found, name, [each for one in runs for each in getattr(one, name)])
        for one in runs:
            for name in ("sized", "squares", "moved", "sketches"):
                kept = getattr(found, name)
                for size, value in getattr(one, name).items():
                    kept[size] = kept[size] + value if size in kept else value
        return found

    def add(
        self,
        seen: Sighting,
        *,
        rate: float | None = None,
        there: Array | None = None,
        drawn_alone: bool = True,
        left: Array | None = None,
    ) -> None:
        """Add a release.

        Parameters
        ----------
        seen : Sighting
            In any orthonormal directions: those of canaries, or all numbers of the release.
        rate : float, optional
            With which each canary was in it, if that is accounted.
        there : bool array of shape (canaries,), optional
            Which could be drawn; all of them if left out.
        drawn_alone : bool
            Whether each was drawn by itself.
        left : array of shape (d,), optional
            What is left of each number, in accounted standard deviations; it is not kept.

        Raises
        ------
        SettingsInvalid (HR-511)
            Other canaries than before.
        """
        if self._present is not None and self._present.shape != seen.present.shape:
            raise SettingsInvalid(
                f"a sighting of {len(seen.present)} canaries after {len(self._present)}.",
                remedy="Audit the same canaries in all.",
            )
        whole = self._present is None or bool((self._present == seen.present).all())
        self._present, self.whole = seen.present, self.whole and whole
        here = np.stack([seen.whitened, seen.expected])
        moments = here @ here.T
        yg, gg = float(moments[0, 1]), float(moments[1, 1])
        self.moments = self.moments + np.array([[seen.left + 2 * yg - gg, yg], [yg, gg]])
        self._pair(here, moments)
        self.sketches.setdefault(here.shape[1], []).append(sketch(here))
        if left is not None:
            self._each(left)
        if seen.known > 0:
            self.along.append(seen.along)
            self.known.append(seen.known)
            self.took_part.append(seen.took_part)
        self.directions, self.releases, self.canaries = self.directions + seen.directions, self.releases + 1, len(seen.present)
        self.kurtosis, self.normal = max(self.kurtosis, seen.law.kurtosis), self.normal and seen.law.normal
        self.information += seen.law.deviation**-2
        if rate is not None:
            self._draws(rate).add(seen.present, np.ones_like(seen.present) if there is None else there, alone=drawn_alone)

    def _draws(self, rate: float) -> Draws:
        for one in self.draws:
            if one.rate == rate:
                return one
        self.draws.append(Draws(rate, np.zeros(self.canaries, np.int64)))
        return self.draws[-1]

    def _each(self, left: Array) -> None:
        size = len(left)
        spectrum = scipy.fft.rfft(left, 2 * size)
        moved = scipy.fft.irfft(spectrum * spectrum.conj(), 2 * size)[:size]
        self.sized[size] = self.sized.get(size, 0) + 1
        self.squares[size] = self.squares.get(size, np.zeros(size)) + left * left
        self.moved[size] = self.moved.get(size, np.zeros(size)) + moved

    def _pair(self, here: Array, moments: Array) -> None:
        before = self._before
        if before is None or before.shape != here.shape:
            self._before = here
            return
        self.pairs = self.pairs + np.stack([before @ here.T, before @ before.T, moments])
        self.paired, self._before = self.paired + here.shape[1], None


SKETCHED = 64


def sketch(rows: Array) -> Array:
    """Sums of rows of shape (k, d) in at most 64 groups of numbers with signs, each over the root of its size: shape (k, 64).

    Groups and signs depend on d alone. Independent normal numbers have independent normal sums.
    """
    d = rows.shape[1]
    if d <= SKETCHED:
        return rows.copy()
    chance = np.random.default_rng(d)
    groups, signs = chance.permutation(d) % SKETCHED, chance.choice([-1.0, 1.0], d)
    sizes = np.bincount(groups, minlength=SKETCHED)
    return np.stack([np.bincount(groups, signs * row, SKETCHED) for row in rows]) / np.sqrt(sizes)
