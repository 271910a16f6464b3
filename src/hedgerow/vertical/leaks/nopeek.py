"""NoPeek: the feature holder trains its network so that activations say less about its features.

    distance correlation of x and z, in [0, 1]: 0 where they are independent, 1 where one is a rotated and scaled copy
    term    alpha * dcor(x, z), added to what the feature holder minimises:  sum(z * received gradient) + term

The term needs x and z, which lie at the feature holder; the label holder's gradient comes as it always does. (As it is often
coded, one loss takes x and the label at one place, which split learning does not have.)

It is a heuristic: it lowers what is recovered by less than a narrow cut does, and the correlation itself ranks the two the
other way round. So a result is told by an attack (`feature_leak`), with the correlation beside it.

Releases : nothing more than before.
Source   : Vepakomma et al., "NoPeek: information leakage reduction to share activations in distributed deep learning", 2020
           (arXiv 2008.09161); Székely, Rizzo, Bakirov 2007 (distance correlation, V-statistic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.events import Event
from hedgerow.core.question import travels
from hedgerow.errors import SettingsInvalid

from .noise import NO_EPSILON

if TYPE_CHECKING:
    from torch import Tensor


@travels
@dataclass(frozen=True)
class NoPeek:
    """A feature holder's own term: `alpha` times the distance correlation of its features and its activations.

    Parameters
    ----------
    alpha : float
        Weight beside the label holder's loss; 0.5 changes little, 2 costs some points of accuracy.

    Raises
    ------
    SettingsInvalid (HR-511)
        Alpha is no positive number.
    """

    alpha: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise SettingsInvalid(f"a NoPeek weight of {self.alpha!r}.", remedy="Give a number above zero, such as 0.5 or 2.")

    @property
    def promise(self) -> str:
        return f"{self}: {NO_EPSILON}."

    def event(self) -> Event:
        """No finite epsilon."""
        return Event("nonprivate")

    def term(self, features: Tensor, activations: Tensor) -> Tensor:
        """What to add to `(activations * received).sum()` before `backward`; a scalar that knows its gradient.

        Parameters
        ----------
        features : tensor of shape (b, ...)
        activations : tensor of shape (b, ...)
            As they left. Time and memory grow as b squared.
        """
        return self.alpha * distance_correlation(features, activations)

    def __str__(self) -> str:
        return f"NoPeek {self.alpha:g}"


def distance_correlation(x: Any, z: Any) -> Tensor:
    """Distance correlation of rows of x and rows of z, a scalar in [0, 1].

    Parameters
    ----------
    x, z : tensors or arrays of shape (b, ...)
        Rows are flattened. 0 where all rows of one of them are alike, or there is one.
    """
    import torch

    first, second = (torch.as_tensor(one).reshape(len(one), -1) for one in (x, z))
    if not first.is_floating_point():
        first = first.to(second.dtype)
    a, b = _centred(first), _centred(second)
    spread = (a * a).mean() * (b * b).mean()
    if not bool(spread > 0):
        return 0 * (first.sum() + second.sum())
    squared = ((a * b).mean() / spread.sqrt()).clamp_min(torch.finfo(a.dtype).tiny)
    return squared.sqrt()


def _centred(rows: Tensor) -> Tensor:
    """Distances of all pairs of rows, less the means of their row and column."""
    import torch

    d = torch.cdist(rows, rows)
    return d - d.mean(0) - d.mean(1, keepdim=True) + d.mean()
