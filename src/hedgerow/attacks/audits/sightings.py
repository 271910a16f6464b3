"""What a release says of canaries, once everything else in it was taken out.

A canary is a contribution of the auditor's own in a direction u, sent longer than the bound, so that a right clip leaves
u times the radius. The auditor of a simulation knows the sum of all other contributions, and which canaries took part:

    x      = (release - known) / radius = U' present + noise            U: one row for each canary
    scores = (U U')^-1 U x                                              each tells of its own canary alone
    w      = L^-1 U x,  L L' = U U'                                     the same, with noise that is independent again
    left   = |x - U' present|^2                                         what nobody put in: noise alone, in all directions
    along  = what is left, in the direction of everything that is known to be in the release

Without the factor (U U')^-1 a score holds parts of all other canaries, which add to the noise: half of it then looks right.
Rows are not kept: of each release remain as many numbers as there are canaries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .noise_laws import NoiseLaw


@dataclass(frozen=True, eq=False)
class Sighting:
    """What one release says.

    Attributes
    ----------
    whitened : array of shape (canaries,)
        w, in units of the accounted standard deviation.
    expected : array of shape (canaries,)
        What w is but for the noise, if the canaries have the length of the bound.
    scores : array of shape (canaries,)
        In units of the bound's radius: 1 for a canary that is in, 0 for others, and noise.
    present : bool array of shape (canaries,)
        Which took part.
    left : float
        Sum of squares of what is left in all directions, in units of the accounted variance.
    directions : int
        Numbers of the release.
    along : float
        What is left in the direction of the known sum, in accounted standard deviations.
    known : float
        Length of that sum in the same unit; 0 where nothing is known to be in the release.
    took_part : float
        Units in the release, canaries included; 0 where nobody counted.
    law : NoiseLaw
        As accounted.
    """

    whitened: Array
    expected: Array
    scores: Array
    present: Array
    left: float
    directions: int
    along: float
    known: float
    took_part: float
    law: NoiseLaw


@dataclass(frozen=True, eq=False)
class CanaryDirections:
    """Directions of canaries.

    Parameters
    ----------
    rows : array of shape (canaries, d)
        What a canary leaves in a release, over the bound's radius: of length 1 in the norm of the bound.

    Raises
    ------
    SettingsInvalid (HR-511)
        More canaries than numbers of a release, or directions that depend on each other.
    """

    rows: Array

    def __post_init__(self) -> None:
        if np.ndim(self.rows) != 2 or not 0 < len(self.rows) <= np.shape(self.rows)[1]:
            raise SettingsInvalid(
                f"canaries of shape {np.shape(self.rows)}.",
                remedy="Give a row for each canary, and at most as many canaries as a release has numbers.",
            )
        _ = self._root

    @classmethod
    def drawn(cls, canaries: int, sizes: tuple[int, ...], rng: np.random.Generator) -> CanaryDirections:
        """Random directions whose part in each layer is as long as in every other.

        Parameters
        ----------
        canaries : int
            How many.
        sizes : tuple of int
            Numbers of each layer, as they follow each other in a release. A clip of each layer by itself that is charged once
            leaves a canary sqrt(layers) times as long as its bound.
        rng : Generator
            Of the auditor.
        """
        parts = [rng.standard_normal((canaries, size)) for size in sizes]
        lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
        return cls(
            np.concatenate([part / length for part, length in zip(parts, lengths, strict=True)], axis=1) / len(sizes) ** 0.5
        )

    @cached_property
    def _root(self) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(np.asarray(self.rows @ self.rows.T, float)))
        except np.linalg.LinAlgError:
            raise SettingsInvalid(
                f"{len(self.rows)} directions of canaries depend on each other.", remedy="Draw them at random."
            ) from None

    def scores(self, left: Array) -> Array:
        """Return (U U')^-1 U x of what is left in a release, or in a sum of releases, over the radius: shape (canaries,)."""
        return self._apart(np.asarray(self.rows @ left, float))[1]

    def _apart(self, projected: Array) -> tuple[Array, Array]:
        """L^-1 and (L L')^-1 of products with the directions."""
        whitened = scipy.linalg.solve_triangular(self._root, projected, lower=True, check_finite=False)
        return whitened, scipy.linalg.solve_triangular(self._root, whitened, lower=True, trans=1, check_finite=False)

    def seen(
        self, release: Array, known: Array, present: Array, *, radius: float, law: NoiseLaw, took_part: float = 0
    ) -> Sighting:
        """Return what a release says.

        Parameters
        ----------
        release : array of shape (d,)
            The total as released, noise included, in the unit of the sum: what was divided is multiplied again by the public
            number that the plan divides by.
        known : array of shape (d,)
            The exact sum of all other contributions, clipped as they should be.
        present : bool array of shape (canaries,)
            Which canaries took part.
        radius : float
            Of the bound.
        law : NoiseLaw
            As accounted.
        took_part : float
            Units in the release, canaries included, where they are sampled: sharpens the test for a division by their number.

        Raises
        ------
        SettingsInvalid (HR-511)
            Shapes that do not fit, or values that are no finite numbers.
        """
        m, d = self.rows.shape
        here = np.asarray(present, bool).ravel()
        if np.shape(release) != (d,) or np.shape(known) != (d,) or here.shape != (m,):
            raise SettingsInvalid(
                f"a release of shape {np.shape(release)}, known {np.shape(known)}, and {here.shape[0]} canaries; "
                f"directions are of shape {self.rows.shape}.",
                remedy="Flatten a release in the order of the directions.",
            )
        unit = radius * law.deviation
        inside = here.astype(self.rows.dtype) @ self.rows / law.deviation
        x = (np.asarray(release, float) - known) / unit
        rest, total = x - inside, np.asarray(known, float) / unit + inside
        length = float(np.linalg.norm(total))
        left = float(rest @ rest)
        if not math.isfinite(left + length):
            raise SettingsInvalid(
                "a release, or what is known of it, holds values that are no finite numbers.",
                remedy="Audit a run that did not diverge.",
            )
        whitened, scores = self._apart(np.asarray(self.rows @ x, float))
        return Sighting(
            whitened=whitened,
            expected=self._root.T @ here / law.deviation,
            scores=scores * law.deviation,
            present=here,
            left=left,
            directions=d,
            along=float(rest @ total) / length if length > 0 else 0.0,
            known=length,
            took_part=took_part,
            law=law,
        )
