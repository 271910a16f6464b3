"""What a split network says of people, and how good it is.

    outputs     f_k(x_k) of some people, in evaluation mode                            sender, to the label holder
    say         top(merge(z)); the label holder keeps what is said of each of them      `then`
    tell        what was said                                                          to a party, or to the hub's seat
    judge       sums of losses and scores over these people                            released

Nobody sees a prediction but the label holder and whoever is named: a party keeps it in its state, and the hub gets it in an
order that it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.crypto.peers import HUB
from hedgerow.errors import MissingColumn, StateLost, suggestion
from hedgerow.learn.models import hits
from hedgerow.vertical.aligned import Aligned
from hedgerow.vertical.given import gives

from .lawful import lawful_predictions
from .network import SplitNetwork
from .piece import tensor
from .reading import People
from .splitnn import SplitState, told
from .steps import Bottom, Top, arrived, few_hidden, sendable
from .ushape import made, take, through

AT_ONCE = 4096
"""People of whom outputs are sent in one question."""

SHOWN = {
    "category": lambda output: torch.softmax(output, 1),
    "binary": lambda output: torch.sigmoid(output.reshape(len(output))),
    "number": lambda output: output.reshape(len(output)),
}
"""From the top's output to what is predicted, by the kind of the label."""


@local
def outputs(broadcast: np.ndarray, party: Party, rng: Any, *, bottoms: Mapping[str, Bottom], who: People) -> np.ndarray:
    """Outputs of a feature holder's part for some people, shape (k, numbers)."""
    bottom = bottoms[party.id]
    rows = _places(broadcast, party, bottom.batches, who)
    with torch.no_grad():
        z = bottom.piece.opened(party.state, trains=False)(bottom.features.rows(party, rows, bottom.piece.dtype))
    found, (start, total) = sendable(z, bottom.letters), bottom.block
    return found if bottom.width == total else np.pad(found, ((0, 0), (start, total - start - bottom.width)))


@local
def say(broadcast: np.ndarray, party: Party, rng: Any, *, top: Top, who: People) -> None:
    """What the network says of some people; the label holder keeps it among what it says of all, shape (n, ...)."""
    rows = _places(broadcast, party, top.batches, who)
    with torch.no_grad():
        z, own = arrived(party, (len(rows), top.width), top.piece.dtype), None
        if top.own is not None:
            own = top.own.piece.opened(party.state, trains=False)(top.own.features.rows(party, rows, top.piece.dtype))
        output: Tensor = top.piece.opened(party.state, trains=False)(top.merged(z, own))
    key, anew = f"{top.keeps}/said", int(broadcast[0]) == 0
    kept = np.full((len(party.w), *output.shape[1:]), np.nan) if anew else np.array(party.state[key])
    kept[rows] = output.numpy()
    party.state[key] = kept


@gives("predictions")
@local
def tell(broadcast: Any, party: Party, rng: Any, *, top: Top, seat: str) -> np.ndarray:
    """What was predicted of each person, shape (n, k); zeros where nothing was, and at the other parties."""
    if party.id != seat:
        return np.zeros((len(party.w), int(broadcast)))
    return np.nan_to_num(predicted(party, top))


@local
def keep(broadcast: Any, party: Party, rng: Any, *, keeps: str) -> None:
    """What came of predictions is kept, as `predicted`, shape (n, k)."""
    party.state[f"{keeps}/predicted"] = np.array(party.received)


@local
def judge(broadcast: np.ndarray, party: Party, rng: Any, *, top: Top, who: People) -> np.ndarray:
    """Losses and scores of some people by the labels of training, shape (n, 2), zeros for others; see `few_hidden`."""
    rows, found = top.batches.people(len(party.w), who), np.zeros((len(party.w), 2))
    output = torch.from_numpy(_said(party, top)[rows]).to(top.piece.dtype)
    target = top.label.rows(top.labels(party), rows, top.piece.dtype)
    losses, right = top.label.losses(output, target), hits(top.label.kind, output, target)
    found[rows] = torch.stack([losses.double(), right.double()], 1).numpy()
    return few_hidden(found, top, rows, int(broadcast))


def predicted(party: Party, top: Top) -> np.ndarray:
    """What the network predicts of each person, shape (n, k): probabilities of classes, of one, or a number."""
    shown: np.ndarray = SHOWN[top.label.kind](torch.from_numpy(_said(party, top))).numpy()
    return shown.reshape(len(shown), -1)


def predict(
    aligned: Aligned,
    fit: SplitState | SplitNetwork,
    to: str,
    *,
    hidden: bool = True,
    who: People = "all",
    labels: Literal["shared"] | None = None,
) -> np.ndarray | None:
    """What a split network says of people, to whom may know it.

    Parameters
    ----------
    fit : SplitState or SplitNetwork
        The network, whose parts the parties keep.
    to : str
        The label holder, which says it; another party, which keeps it then as well; or "hub".
    hidden : bool
        As in training.
    who : {"all", "trained", "held out"}
    labels : None or "shared"
        Whether a party other than the label holder may know the labels. It has to be said, here or in training, where training
        did not replace labels at random: predictions tell the party most labels of people whom it can name. To the hub
        predictions of people who were trained on tell their labels as well, of people whom it cannot name.

    Returns
    -------
    array of shape (n, k), or None
        To the hub, in an order that it does not know: of a category probabilities of its levels, of a binary label of one, of a
        number its value; zeros for people who were not asked for. To a party nothing is returned: it keeps them in its state
        as `<name>/kept/predicted`, in the aligned order.

    Raises
    ------
    LabelsExposed (HR-247)
        A party would be told labels that were not said to be shared. Nobody was asked.
    MissingColumn (HR-403)
        No party has this name.
    """
    network, hub = (fit.fit, fit.middle) if isinstance(fit, SplitState) else (fit, None)
    top, seat = network.top, network.seat
    if to != HUB and to not in aligned.names:
        raise MissingColumn(f"no party is called {to!r}.", remedy=suggestion(to, [*aligned.names, HUB]))
    lawful_predictions(labels, network.shared or top.privacy is not None, to, seat)
    ask(aligned, network, hidden=hidden, who=who, hub=hub)
    width = top.label.n_classes if top.label.kind == "category" else 1
    local = partial(tell, top=top, seat=seat)
    if to == HUB:
        found: np.ndarray = aligned.sum(local, np.asarray(width))
        return found
    aligned.send(local, np.asarray(width), parties=[seat], to=to, then=partial(keep, keeps=top.keeps))
    return None


def evaluate(
    aligned: Aligned, fit: SplitState | SplitNetwork, *, hidden: bool = True, who: People = "trained"
) -> dict[str, float]:
    """How good a split network is on people, by two sums at the label holder.

    Parameters
    ----------
    who : {"all", "trained", "held out"}
        Held out are those of the training's `held_out`.

    Returns
    -------
    dict
        `loss`, `accuracy` (of numbers `mean_squared_error`) and `n`. Where labels were replaced at random, those that were said
        count, since the true ones are not told: a network that is always right then has the accuracy 1 - flip. An accuracy is
        NaN where fewer than `aligned.least` people are wrong, or right.

    Releases
    --------
    Two sums over these people.
    """
    network, hub = (fit.fit, fit.middle) if isinstance(fit, SplitState) else (fit, None)
    ask(aligned, network, hidden=hidden, who=who, hub=hub)
    n = len(network.top.batches.people(aligned.n, who))
    judged = aligned.total(partial(judge, top=network.top, who=who), np.asarray(aligned.least), party=network.seat)
    loss, score = told(judged, max(n, 1))
    return {"loss": loss, "mean_squared_error" if network.top.label.kind == "number" else "accuracy": score, "n": float(n)}


def ask(aligned: Any, network: SplitNetwork, *, hidden: bool, who: People, hub: Mapping[str, Any] | None = None) -> None:
    """Let the label holder learn what the network says of people, some at a time."""
    top, senders, middle = network.top, network.senders, network.middle
    up, then = partial(outputs, bottoms=network.bottoms, who=who), partial(say, top=top, who=who)
    hidden = hidden and (middle or top).merge != "concat"
    for start in range(0, max(len(top.batches.people(aligned.n, who)), 1), AT_ONCE):
        at = np.asarray([start, start + AT_ONCE])
        if middle is None:
            aligned.send(up, at, parties=senders, to=network.seat, then=then, hidden=hidden)
        elif middle.at == HUB:
            z = tensor(aligned.open_rows(up, at, parties=senders, hidden=hidden), middle.piece.dtype)
            rows = middle.through(dict(hub or {}), z, trains=False)
            aligned.each(partial(take, then=then), {"at": at, "rows": rows}, parties=[network.seat])
        else:
            into = partial(through, middle=middle, trains=False)
            aligned.send(up, at, parties=senders, to=middle.at, then=into, hidden=hidden)
            aligned.send(partial(made, middle=middle), at, parties=[middle.at], to=network.seat, then=then)


def _said(party: Party, top: Top) -> np.ndarray:
    kept = party.state.get(f"{top.keeps}/said")
    if kept is None:
        raise StateLost("the label holder keeps no predictions.", remedy="Ask for them first: predict(aligned, fit, to=...).")
    return np.asarray(kept)


def _places(at: np.ndarray, party: Party, batches: Any, who: People) -> np.ndarray:
    found: np.ndarray = batches.people(len(party.w), who)[int(at[0]) : int(at[1])]
    return found
