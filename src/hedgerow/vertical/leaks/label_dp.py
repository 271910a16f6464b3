"""Label differential privacy: the label holder trains with labels that were replaced at random, once and for all.

    once   each label y is kept with chance e^eps / (e^eps + K - 1), else replaced by one of the others   (the only draw)
    then   every epoch trains with the label that was said; the loss is corrected for the chances

Whatever is made of the labels that were said is post-processing: gradients, weights, any number of epochs. So the whole
training costs epsilon once for each record, and records do not add up, since each label is said by itself. A draw that is made
again each epoch would cost epsilon each time, and the average of the draws is the label; `LabelDP.once` keeps the first one,
refuses another, and makes labels of a smaller epsilon out of those that were said before.

What it does not cover: features; what the label holder computes of *true* labels, such as a training accuracy that it tells or
a stop that follows it; and what the model predicts. A model that is right about people tells their labels with or without
their own records.

Releases : nothing by itself; what is trained with the labels that were said may be told.
Unit     : record; neighbours are two data sets that differ in one person's label.
Source   : Warner 1965; Kairouz, Bonawitz, Ramage 2016 (K answers); Ghazi et al., "Deep learning with label differential
           privacy", NeurIPS 2021, Definition 1.2 and RRTop-K with K = all; Patrini et al. 2017 (CVPR), Theorems 1 and 2
           (corrections). Differs: chances are whole numbers of 2^64 words, rounded towards telling less.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.events import Event
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy, keystream
from hedgerow.core.state import State
from hedgerow.errors import BudgetInvalid, NotBinary, SettingsInvalid, StateLost
from hedgerow.privacy.local.bits import GeneralisedScheme
from hedgerow.privacy.local.chance import WORD, checked, lie

if TYPE_CHECKING:
    from torch import Tensor

Labels = NDArray[np.int64]

SAID, DRAWN_FROM = "label dp: labels said", "label dp: drawn from"
"""Keys of a party's state: what was said of each record last, and a mark of what it was drawn from."""

_AT = "label dp: said at epsilon "
_BLOCK = 2**16


@travels
@dataclass(frozen=True)
class LabelDP:
    """Randomised response on labels, drawn once for each record.

    Parameters
    ----------
    epsilon : float
        Of each record's label, for the whole training. 1 is strong, 4 is weak, beyond 8 hardly any label is replaced.
    classes : int
        Labels are 0 to classes - 1.

    Raises
    ------
    BudgetInvalid (HR-214)
        Epsilon is outside what a local report can have.
    SettingsInvalid (HR-511)
        There are fewer than two classes.
    """

    epsilon: float
    classes: int = 2

    def __post_init__(self) -> None:
        checked(self.epsilon)
        if isinstance(self.classes, bool) or not isinstance(self.classes, int) or self.classes < 2:
            raise SettingsInvalid(f"labels of {self.classes!r} classes.", remedy="Give a whole number from 2 on.")

    @property
    def flip(self) -> float:
        """Chance that a label is replaced: (K - 1) / (e^eps + K - 1)."""
        return (self.classes - 1) * lie(self.epsilon, self.classes) / WORD

    @property
    def ceiling(self) -> float:
        """AUC (with K classes, share of labels) of who reads every label that was said and nothing else: 0.731 at eps 1."""
        return 1 - self.flip

    @property
    def chances(self) -> NDArray[np.float64]:
        """Chance of each answer (column) for each true label (row), shape (classes, classes)."""
        other = lie(self.epsilon, self.classes) / WORD
        found = np.full((self.classes, self.classes), other)
        np.fill_diagonal(found, 1 - (self.classes - 1) * other)
        return found

    def ratio(self) -> Fraction:
        """The largest factor by which two labels can differ in the chance of one answer, from the words themselves."""
        return GeneralisedScheme(self.classes, lie(self.epsilon, self.classes)).ratio()

    def event(self) -> Event:
        """The cost of one person's label, over the whole training: pure epsilon.

        It holds for another label of the same person, and for a person whose label is not there, of whom any answer would be
        as likely. It says nothing of whether the person is there at all: it prices labels, and must stand apart from what a
        ledger charges for records.
        """
        return Event("pure", epsilon=self.epsilon)

    @property
    def promise(self) -> str:
        """What is promised, in one sentence."""
        return (
            f"Each person's label is {self.epsilon:g}-differentially private, once for all epochs: {self.flip:.1%} of labels "
            "are replaced. Features, and what the model predicts, are not protected by it."
        )

    # ---- the draw ------------------------------------------------------------------------------------------------------
    def draw(self, labels: Any, entropy: Entropy | None = None) -> Labels:
        """Say one label for each record: a fresh draw, which costs epsilon. Use `once` where it may be called again.

        Parameters
        ----------
        labels : array of shape (n,)
            Whole numbers from 0 to classes - 1.
        entropy : callable, optional
            `entropy(m)` gives m uniform bytes, as a party's stream does; by default those of the operating system.

        Returns
        -------
        int64 array of shape (n,)

        Raises
        ------
        NotBinary (HR-311), SettingsInvalid (HR-511)
            A label is no whole number in this range.
        """
        return self._say(self.admitted(labels), lie(self.epsilon, self.classes), entropy)

    def _say(self, true: Labels, away: int, entropy: Entropy | None) -> Labels:
        """Replace each label by each other one with so many words of 2^64."""
        source = keystream(os.urandom(32)) if entropy is None else entropy
        scheme = GeneralisedScheme(self.classes, away)
        said = np.empty(len(true), np.int64)
        for start in range(0, len(true), _BLOCK):
            part = true[start : start + _BLOCK, None]
            words = np.frombuffer(source(8 * len(part)), "<u8").reshape(len(part), 1, 1)
            said[start : start + _BLOCK] = scheme.report(part, words).argmax(axis=1)
        return said

    def once(self, state: State, labels: Any, entropy: Entropy | None = None) -> Labels:
        """Say the label of each record: drawn the first time, and what was said then ever after.

        A training at a smaller epsilon, as in a comparison of several, says what was said before, some of it replaced once
        more: all of them together cost the largest epsilon, and not the sum.

        Parameters
        ----------
        state : dict
            The label holder's `party.state`, which is committed with the batch that was counted and lives as long as it.
        labels : array of shape (n,)
            In the same order each time, as alignment gives it.
        entropy : callable, optional
            As of `draw`.

        Raises
        ------
        BudgetInvalid (HR-214)
            Labels, their order or the number of classes are not those of the first draw, or epsilon is above it: that takes a
            second draw, which costs another epsilon, and both together tell more than either.
        """
        true = self.admitted(labels)
        mark = np.frombuffer(hashlib.blake2b(f"{self.classes}/".encode() + true.tobytes(), digest_size=32).digest(), np.uint8)
        drawn = sorted(float(key.removeprefix(_AT)) for key in state if key.startswith(_AT))
        if DRAWN_FROM not in state and SAID not in state and not drawn:
            state.update({DRAWN_FROM: mark.copy(), self._at: self.draw(true, entropy)})
        elif not np.array_equal(state.get(DRAWN_FROM, ()), mark) or not drawn or drawn[-1] < self.epsilon:
            raise BudgetInvalid(
                f"labels of {len(true)} records would be drawn anew, after some were drawn "
                + (f"at epsilon {drawn[-1]:g}, " if drawn else "")
                + "from other labels, in another order or at a smaller epsilon.",
                remedy="Train with the labels of the first draw, at its epsilon or smaller ones; or begin another study,\n"
                "which costs its own.",
                asked=True,
            )
        elif self._at not in state:
            nearest = LabelDP(min(each for each in drawn if each > self.epsilon), self.classes)
            state[self._at] = self.replaced_again(nearest, np.asarray(state[nearest._at]), entropy)
        state[SAID] = state[self._at]
        return self.said(state)

    def said(self, state: State) -> Labels:
        """What `once` said at this epsilon, shape (n,).

        Raises
        ------
        StateLost (HR-615)
            Nothing was said, or the state is lost.
        """
        if self._at not in state:
            raise StateLost("the label holder keeps no labels that were said.", remedy="Begin the training anew.")
        kept: Labels = np.asarray(state[self._at], np.int64)
        return kept

    def replaced_again(self, weaker: LabelDP, said: Labels, entropy: Entropy | None = None) -> Labels:
        """Labels that were said at a larger epsilon, replaced once more, so that they have the law of this one.

        A label that was kept with chance a and is kept again with chance b is right with chance a b + (1 - a)(1 - b) / (K - 1).
        What is said depends on what was said before alone, so that both together cost the larger epsilon.
        """
        return self._say(said, self.words_again(weaker), entropy)

    def words_again(self, weaker: LabelDP) -> int:
        """Words of 2^64 by which a label said at a larger epsilon becomes each other one, rounded towards telling less."""
        others = self.classes - 1
        a, wanted = (Fraction(WORD - others * lie(one.epsilon, self.classes), WORD) for one in (weaker, self))
        b = (wanted - (1 - a) / others) / (a - (1 - a) / others)
        return math.ceil((1 - b) * WORD / others)

    @property
    def _at(self) -> str:
        return f"{_AT}{self.epsilon!r}"

    def admitted(self, labels: Any) -> Labels:
        """Labels as whole numbers of shape (n,), or a refusal that names none of them."""
        given = np.asarray(labels)
        flat = given.reshape(len(given)) if given.ndim == 2 and given.shape[1] == 1 else given
        numbers = flat.dtype.kind in "bif" and flat.ndim == 1
        if not numbers or not bool(((flat == np.floor(flat)) & (flat >= 0) & (flat < self.classes)).all()):
            said = f"labels that are not whole numbers from 0 to {self.classes - 1}, one for each record."
            remedy = "Code them as such, in a preparation at the label holder."
            raise (NotBinary if self.classes == 2 else SettingsInvalid)(said, remedy=remedy, asked=True)
        return flat.astype(np.int64)

    # ---- the loss ------------------------------------------------------------------------------------------------------
    def loss(self, scores: Tensor, said: Tensor, correction: Literal["forward", "backward", "none"] = "forward") -> Tensor:
        """Mean log loss of a batch by the labels that were said, corrected for the chances.

        forward    log loss of the chance that this label is *said*. Its optimum is the true model, it is never negative, and
                   its gradient is bounded: the default.
        backward   the combination of log losses whose mean over the draws is the log loss by the true labels: unbiased, batch
                   by batch, and unbounded below.
        none       log loss by the label as it was said. Its optimum is a model of what is said.

        Parameters
        ----------
        scores : tensor of shape (b,), (b, 1) or (b, classes)
            Logits; with two classes one column may give the logit of class 1. Logarithms of probabilities are logits too.
        said : tensor of shape (b,)

        Returns
        -------
        tensor, a scalar
        """
        import torch

        logs = log_chances(scores, self.classes)
        index = said.reshape(-1, 1).long()
        law = torch.as_tensor(self.chances, dtype=logs.dtype, device=logs.device)
        if correction == "none":
            return -logs.gather(1, index).mean()
        if correction == "forward":
            return -torch.logsumexp(logs + law.log()[:, index[:, 0]].T, dim=1).mean()
        if correction == "backward":
            return -(logs * torch.linalg.inv(law)[index[:, 0]]).sum(1).mean()
        raise SettingsInvalid(f"a correction {correction!r}.", remedy="Say 'forward', 'backward' or 'none'.")

    def __str__(self) -> str:
        return f"label DP, epsilon {self.epsilon:g}"


def log_chances(scores: Tensor, classes: int) -> Tensor:
    """Logarithms of the chances of each class, shape (b, classes), from logits of shape (b,), (b, 1) or (b, classes)."""
    import torch
    from torch.nn import functional

    flat = scores.reshape(len(scores), -1)
    if classes == 2 and flat.shape[1] == 1:
        return torch.cat([functional.logsigmoid(-flat), functional.logsigmoid(flat)], dim=1)
    if flat.shape[1] != classes:
        raise SettingsInvalid(
            f"{flat.shape[1]} scores of each record for {classes} classes.", remedy="Give the last layer one output per class."
        )
    return functional.log_softmax(flat, dim=1)


def epsilon_of_draws(epsilon: float, draws: int) -> float:
    """Epsilon of the broken scheme that draws anew each epoch: it adds up."""
    return epsilon * draws


def found_by_majority(dp: LabelDP, draws: int) -> float:
    """Chance that the majority of so many draws of a binary label is the label; ties count half.

    0.731 of one draw at epsilon 1, 0.935 of nine: what drawing anew each epoch gives away.
    """
    keep = 1 - dp.flip
    chances = [math.comb(draws, k) * keep**k * dp.flip ** (draws - k) for k in range(draws + 1)]
    return sum(c * (1.0 if 2 * k > draws else 0.5 if 2 * k == draws else 0.0) for k, c in enumerate(chances))
