"""Predictions of people by a regression whose columns lie apart, for whoever may know them.

    own part     X_k beta_k at party k, in the columns' own units                            each sender
    predictor    the intercept and the sum of own parts                                      whoever receives
    prediction   the mean of the response there                                              whoever receives

The people may be others than those of the fit: parties that hold the same columns align them in a study of their own.
Coefficients are public. So a part of a linear predictor is an equation in its party's columns: d parts of one person with
different coefficients give d columns, and a single part gives a column that stands alone, or columns of few values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.crypto.peers import HUB
from hedgerow.data import Column
from hedgerow.errors import ColumnsDiffer, DisclosureExceeded, MissingColumn, SettingsInvalid, suggestion
from hedgerow.stats.expressions import evaluate
from hedgerow.stats.factors import INTERCEPT
from hedgerow.stats.fit import Fit
from hedgerow.stats.formula import read_number
from hedgerow.stats.linear.losses import FamilyName, loss_of
from hedgerow.stats.penalty.penalised import PenalisedFit

from .channel import refuse_noise
from .sentences import gives
from .terms import OwnTerm, Terms, admit_column, block_of, owner_of

if TYPE_CHECKING:
    from .aligned import Aligned
    from .split import SplitNetwork, SplitState
    from .split.reading import People

FAMILIES = ("gaussian", "binomial", "poisson")


# ---- at the parties -------------------------------------------------------------------------------------------------
@gives("parts of linear predictors", told="the coefficients of all columns")
@local
def predictor_part(
    beta: Array, party: Party, rng: Any, *, terms: Terms, offset: tuple[str, str] | None, to: str | None, most: int
) -> Array:
    """A party's part of the linear predictor without the intercept, shape (n, 1); `beta` (d,) is in the order of `terms`.

    A party counts the predictions to which it sent a part, for each receiver.
    """
    if to is not None and party.id != to:
        _count(party, to, most)
    start, rows = 0, np.zeros((len(party.w), 1))
    for name, own in terms:
        size = sum(len(one.names) for one in own)
        if name == party.id and size:
            rows = block_of(party, own) @ np.asarray(beta)[start : start + size, None]
        start += size
    if offset is not None and offset[0] == party.id:
        rows = rows + evaluate(offset[1], party.columns)[:, None]
    return rows


@local
def keep_prediction(beta: Any, party: Party, rng: Any, *, level: float, family: FamilyName, name: str) -> None:
    """The mean of the response at the total of parts and the intercept is kept, shape (n,)."""
    party.state[f"{name}/predicted"] = np.array(loss_of(family).mean(level + np.asarray(party.received)[:, 0]))


def _count(party: Party, to: str, most: int) -> None:
    key = f"predictions to {to}"
    before = int(np.asarray(party.state.get(key, 0)))
    if before + 1 > most:
        raise DisclosureExceeded(
            f"{party.id} has sent {to} its part of {before} predictions, of {most} at most: with the coefficients, as many "
            "predictions as columns give the columns.",
            remedy='Keep the predictions that were made, or let the hub have others: to="hub".',
            asked=True,
        )
    party.state[key] = np.asarray(before + 1)


# ---- what is asked --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PredictorParts:
    """Who has which part of a linear predictor.

    Attributes
    ----------
    terms : tuple of (party, terms)
        In raw units, without the intercept.
    beta : array of shape (d,)
        Coefficients in the order of `terms`.
    level : float
        The intercept, or zero.
    offset : (party, expression) or None
    """

    terms: Terms
    beta: Array
    level: float
    offset: tuple[str, str] | None

    @property
    def senders(self) -> list[str]:
        """Parties that have a part."""
        return [name for name, own in self.terms if own or (self.offset is not None and self.offset[0] == name)]

    def most(self, to: str) -> int:
        """Predictions that a party may receive: fewer than the columns of any other sender, and one at least."""
        columns = {name: sum(len(one.names) for one in own) for name, own in self.terms}
        return max(1, min((columns[name] or 1 for name in self.senders if name != to), default=1) - 1)


def parts_of(aligned: Any, fit: Fit | PenalisedFit) -> PredictorParts:
    """Find the owners of a fit's terms among parties, whose declarations must be those of the fit.

    Raises
    ------
    MissingColumn (HR-403), ColumnsDiffer (HR-407), SchemaInvalid (HR-409), FormulaInvalid (HR-310)
    """
    spec, owners = fit.spec, dict[str, str]()
    for column in spec.reads:
        owner = owners[column] = aligned.owner(column)
        found, fitted = aligned.schemas[owner][column], spec.schema[column]
        admit_column(found)
        if _declared(found) != _declared(fitted):
            raise ColumnsDiffer(
                f"column {column!r} is declared {_declared(found)} at {owner}, and {_declared(fitted)} in the fit.",
                remedy="Declare it as in the fit: coefficients are for its levels, and ranges bound what it tells.",
            )
    level, start = 0.0, 0
    found_terms: dict[str, list[OwnTerm]] = {name: [] for name in aligned.names}
    found_beta: dict[str, list[Array]] = {name: [] for name in aligned.names}
    for term in spec.terms:
        coefficients = np.asarray(fit.coef_)[start : start + len(term.names)]
        start += len(term.names)
        if term.names == (INTERCEPT,):
            level = float(coefficients[0])
            continue
        reads = tuple(dict.fromkeys(name for factor in term.factors for name in factor.reads(spec.schema)))
        owner = owner_of(reads, owners, ":".join(factor.text for factor in term.factors))
        found_terms[owner].append(OwnTerm(term))
        found_beta[owner].append(coefficients)
    beta = np.concatenate([np.zeros(0), *(one for name in aligned.names for one in found_beta[name])])
    offset = None
    if spec.offset is not None:
        offset = (owner_of(read_number(spec.offset, spec.schema).reads(spec.schema), owners, spec.offset), spec.offset)
    return PredictorParts(tuple((name, tuple(own)) for name, own in found_terms.items()), beta, level, offset)


def predict(
    aligned: Aligned,
    fit: Fit | PenalisedFit | SplitState | SplitNetwork,
    to: str,
    *,
    hidden: bool = True,
    name: str = "regression",
    who: People = "all",
) -> Array | None:
    """Predict people by a regression whose columns lie apart, for whoever may know what is predicted of them.

    Parameters
    ----------
    aligned : Aligned
        Of the people of the fit, or of new people: parties hold the columns of the formula's right-hand side, declared as in
        the fit. The target need not be there.
    fit : Fit or PenalisedFit
        Of `linear_regression`, `ridge`, `lasso`, `logistic_regression` or `poisson_regression`. A split network goes to
        `hedgerow.vertical.split.predict`, with `who`.
    to : str
        "hub", or the name of the party that alone receives the predictions.
    hidden : bool
        Whether the parts of two senders or more besides the receiver are masked, so that it sees their total alone.
    name : str
        The party keeps them in its state as `<name>/predicted`.
    who : {"all", "trained", "held out"}
        Of a split network.

    Returns
    -------
    array of shape (n,), or None
        To the hub the mean of the response of each person, in an order that it does not know, to 2^-33 in the linear predictor
        for each party. To a party nothing is returned: it keeps an array (n,) in the aligned order.

    Releases
    --------
    To the hub linear predictors in secret order, which every party counts as an opening. To a party predictions of people whom
    it can name, so that it knows the total of the other senders' parts. **One sender besides the receiver: the total is that
    party's own part of the linear predictor**, masked or not. Coefficients are known: a part of one column is the column, one
    of few values often tells them, and d parts with different coefficients give d columns. Each sender counts them in a
    study, and refuses as many predictions to a party as the sender with the fewest columns has; it sends one, even of a single
    column. Another study counts anew.

    Raises
    ------
    MissingColumn (HR-403), ColumnsDiffer (HR-407), SchemaInvalid (HR-409), FormulaInvalid (HR-310)
        A column is missing, held twice, declared otherwise than in the fit, or a term's columns lie at several parties; or no
        party is called `to`. Before any party is asked, as the next two.
    UnlawfulChannel (HR-211)
        The channel clips or adds noise.
    SettingsInvalid (HR-511)
        A family that is not fitted over columns that lie apart, or weights of columns.
    DisclosureExceeded (HR-216)
        A sender has sent too many predictions to this party.
    """
    if not isinstance(fit, Fit | PenalisedFit):
        from .split import predict as predict_by_network  # needs torch

        return predict_by_network(aligned, fit, to, hidden=hidden, who=who)
    if to != HUB and to not in aligned.names:
        raise MissingColumn(f"no party is called {to!r}.", remedy=suggestion(to, [*aligned.names, HUB]))
    refuse_noise(
        aligned, "predictions are rows of records, which no noise in a sum hides", "Predict through the handle without noise."
    )
    if fit.family not in FAMILIES or fit.spec.scales or fit.spec.weights:
        raise SettingsInvalid(
            f"a {fit.family} fit with weights {fit.spec.weights!r} is not one over columns that lie apart.",
            remedy="Fit by hr.vertical.linear_regression, ridge, lasso, logistic_regression or poisson_regression.",
        )
    parts = parts_of(aligned, fit)
    if not parts.senders:
        raise SettingsInvalid("the formula has no columns: all people are predicted alike.", remedy="Take the fit's intercept.")
    ask = partial(predictor_part, terms=parts.terms, offset=parts.offset)
    if to == HUB:
        eta = np.asarray(aligned.sum(partial(ask, to=None, most=0), parts.beta), dtype=float)[:, 0]
        return np.asarray(loss_of(fit.family).mean(parts.level + eta))
    ask = partial(ask, to=to, most=parts.most(to))
    then = partial(keep_prediction, level=parts.level, family=fit.family, name=name)
    aligned.send(ask, parts.beta, parties=parts.senders, to=to, then=then, hidden=hidden)
    others = [sender for sender in parts.senders if sender != to]
    aligned._note("the coefficients of all columns", *{*parts.senders, to})
    if len(others) == 1 or (others and not hidden):
        told = (
            f"the part of a linear predictor of {' and of '.join(others)}, person by person, from which with the coefficients"
        )
        aligned._note(f"{told} values of columns follow: of one column at once, of d columns from d predictions", to)
    return None


def _declared(column: Column) -> Column:
    """What predictions depend on: not the role, nor whether values may be missing, which is refused elsewhere."""
    return replace(column, role="feature", optional=False, description="")
