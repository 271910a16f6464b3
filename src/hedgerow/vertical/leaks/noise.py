"""Noise on the gradients that go back to feature holders. None of it has a finite epsilon.

    isotropic   g + N(0, s^2 I),  s = level * (largest length in the batch) / sqrt(cut)
    max-norm    g * (1 + N(0, m^2 / |g|^2 - 1)),  m the largest length in the batch: all lengths are alike on average

Both hide what an attack by norm or by direction reads, and no more than that is claimed. The noise is drawn anew each time, so
that the mean over epochs tells what one epoch does not; its size follows the largest gradient of the batch, somebody's own.
A batch of one record is its own largest one, and max-norm noise adds nothing to it: such a batch is refused.

Unit     : none.
Source   : Li et al., "Label leakage and protection in two-party split learning", ICLR 2022, sections 4.1 (isotropic) and 4.2
           (max-norm alignment); their `sumKL` noise is not here.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.events import Event
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy, keystream, uniforms
from hedgerow.errors import SettingsInvalid

NO_EPSILON = "no finite epsilon"


class GradientDefence(Protocol):
    """What a label holder does to the gradients of a batch before they leave.

    Attributes
    ----------
    promise : str
        What is promised, in one sentence.
    fewest : int
        Records that a batch needs.
    """

    @property
    def promise(self) -> str: ...

    @property
    def fewest(self) -> int: ...

    def event(self) -> Event:
        """What one batch costs."""

    def protect(self, gradients: Any, entropy: Entropy | None = None) -> NDArray[Any]:
        """Gradients of shape (b, cut) as they leave, in the type in which they came.

        Parameters
        ----------
        gradients : array of shape (b, cut)
        entropy : callable, optional
            `entropy(m)` gives m uniform bytes, as a party's stream does; by default those of the operating system.
        """


class _Heuristic:
    """A defence that hides from attacks that are known, and promises nothing about others."""

    @property
    def promise(self) -> str:
        return f"{self}: {NO_EPSILON}."

    @property
    def fewest(self) -> int:
        return 1

    def event(self) -> Event:
        """No finite epsilon."""
        return Event("nonprivate")


@travels
@dataclass(frozen=True)
class IsotropicNoise(_Heuristic):
    """Gaussian noise of one size in every direction.

    Parameters
    ----------
    level : float
        Length of the noise of one record, over the largest gradient of its batch.

    Raises
    ------
    SettingsInvalid (HR-511)
        The level is no positive number.
    """

    level: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.level) and self.level > 0):
            raise SettingsInvalid(f"noise of level {self.level!r}.", remedy="Give a number above zero, such as 1 or 4.")

    def protect(self, gradients: Any, entropy: Entropy | None = None) -> NDArray[Any]:
        """Add noise to gradients of shape (b, cut)."""
        g = _rows(gradients)
        largest = float(np.linalg.norm(g.astype(np.float64), axis=1).max())
        noise = normals(g.size, entropy).reshape(g.shape) * (self.level * largest / math.sqrt(g.shape[1]))
        return np.asarray(g + noise, g.dtype)

    def __str__(self) -> str:
        return f"Gaussian noise of {self.level:g} x the largest gradient"


@travels
@dataclass(frozen=True)
class MaxNormNoise(_Heuristic):
    """Noise along each gradient, which gives all of a batch the same expected squared length."""

    @property
    def fewest(self) -> int:
        return 2

    def protect(self, gradients: Any, entropy: Entropy | None = None) -> NDArray[Any]:
        """Stretch gradients of shape (b, cut) at random.

        Raises
        ------
        SettingsInvalid (HR-511)
            A batch has one record, which would leave as it is.
        """
        g = _rows(gradients)
        if len(g) < self.fewest:
            raise SettingsInvalid(
                "max-norm noise on a batch of one record, which is the longest itself and would leave as it is.",
                remedy="Choose a batch size that leaves no single record over, or leave the last batch out.",
                asked=True,
            )
        length = np.linalg.norm(g.astype(np.float64), axis=1)
        ratio = np.divide(length.max(), length, out=np.ones_like(length), where=length > 0)
        stretch = 1 + normals(len(g), entropy) * np.sqrt(np.maximum(ratio**2 - 1, 0.0))
        return np.asarray(g * stretch[:, None], g.dtype)

    def __str__(self) -> str:
        return "max-norm noise"


def normals(n: int, entropy: Entropy | None = None) -> NDArray[np.float64]:
    """n standard normal numbers from uniform bytes, by default of the operating system.

    They have 53 bits and stop at 8.3 standard deviations: good against attacks that are measured, not for an epsilon.
    """
    import scipy

    source = keystream(os.urandom(32)) if entropy is None else entropy
    found: NDArray[np.float64] = scipy.special.ndtri(uniforms(source, n) + 2.0**-54)
    return found


def _rows(gradients: Any) -> NDArray[Any]:
    g = np.asarray(gradients)
    if g.ndim != 2 or not g.size or not np.isfinite(g).all():
        raise SettingsInvalid(
            f"gradients of shape {g.shape}, or such that are not finite.", remedy="Lower the learning rate.", asked=True
        )
    return g
