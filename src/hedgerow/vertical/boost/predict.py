"""What boosted trees say of the common people: owners of cuts tell sides, who predicts adds up leaves."""

from __future__ import annotations

from functools import partial

from hedgerow.core.arrays import Array
from hedgerow.crypto.peers import HUB
from hedgerow.errors import MissingColumn, suggestion
from hedgerow.vertical.aligned import Aligned

from . import locals as at_party
from .results import BoostedTrees

PREDICTED = "predicted"
"""Under which a party keeps scores."""


def predict(aligned: Aligned, fit: BoostedTrees, to: str) -> Array | None:
    """Scores of all common people, those in training and those left out.

    Parameters
    ----------
    aligned : Aligned
        The alignment in which the trees were grown.
    fit : BoostedTrees
    to : str
        The party that keeps the scores, or "hub".

    Returns
    -------
    array of shape (n,), or None
        To the hub, scores in an order that it does not know, to 2^-33: of two classes log odds of the second, of a number its
        value. To a party nothing is returned: it keeps them in its state as `predicted`, in the aligned order.

    Releases
    --------
    To `to`, on which side of every cut of another party each person is; of the hub's scores to the holder of labels, who was
    told the same in training. The hub sees scores alone.

    Raises
    ------
    MissingColumn (HR-403)
        No party has this name.
    UnlawfulChannel (HR-211), BudgetExhausted (HR-213)
        The channel adds noise, or there is a budget: sides are told of single people.
    """
    if to != HUB and to not in aligned.names:
        raise MissingColumn(f"no party is called {to!r}.", remedy=suggestion(to, [*aligned.names, HUB]))
    seat = fit.holder if to == HUB else to
    cuts = tuple((cut.party, cut.column, cut.bin) for cut in fit.cuts())
    owners = sorted({cut.party for cut in fit.cuts()}) or [seat]
    aligned.send(
        partial(
            at_party.sides_anew,
            cuts=cuts,
            columns=tuple(fit.columns.items()),
            n_bins=fit.bins,
            least=max(2, aligned.least),
        ),
        parties=owners,
        to=seat,
        then=partial(at_party.keep_scores, trees=fit.trees, base=fit.base, under=PREDICTED),
    )
    if to != HUB:
        return None
    found: Array = aligned.sum(partial(at_party.tell_scores, holder=seat, under=PREDICTED))[:, 0]
    return found
