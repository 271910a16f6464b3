"""Listings of programs that bring scores and baselines. Modules that need an extra are imported when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from hedgerow.data import Schema
from hedgerow.stats import Fitted
from hedgerow.stats.linear.loss import FamilyName

from . import model_scores as scores
from . import regression as room
from .listing import Listing, Outcome


def regression(family: FamilyName, sentence: str) -> Listing:
    """List the linear or the logistic regression."""
    gaussian = family == "gaussian"
    return _statistic(
        "hedgerow.stats:regression",
        sentence,
        room.outcome(family),
        scores.reading(family),
        scores.r_squared if gaussian else scores.log_loss,
        ("R2", True) if gaussian else ("log-loss", False),
        fixed={"family": family, "alpha": 1.0} | ({"rounds": 1} if gaussian else {}),
    )


def log_regression(family: FamilyName, sentence: str) -> Listing:
    """List the regression of a family with a log link."""
    shown, judge = room.outcome(family), scores.explained(family)
    path, fixed = "hedgerow.studies.models:log_regression", {"family": family}
    return _statistic(path, sentence, shown, scores.reading(family), judge, ("D2", True), ask=False, fixed=fixed)


def _statistic(
    path: str,
    sentence: str,
    outcome: Callable[..., Outcome],
    read: scores.Read,
    judge: scores.Judge,
    metric: tuple[str, bool],
    *,
    ask: bool = True,
    **more: Any,
) -> Listing:
    """List a program of statistics; with `ask` the finished fit can be measured by sums over the parties."""
    known = scores.score(read, judge)
    return Listing(
        path,
        sentence,
        outcome=outcome,
        score=known,
        watch=scores.on_test(metric[0], known),
        metric=lambda schema: metric,
        ask=scores.over_parties(read) if ask else None,
        **more,
    )


def multinomial_regression(sentence: str) -> Listing:
    """List the regression of a category's levels."""
    return Listing(
        "hedgerow.studies.models:multinomial_regression",
        sentence,
        outcome=room.multinomial,
        score=scores.class_loss,
        watch=scores.on_test("log-loss", scores.class_loss),
        metric=lambda schema: ("log-loss", False),
    )


def negative_binomial_regression(sentence: str) -> Listing:
    """List the regression of counts that estimates alpha."""
    read = scores.reading("negative binomial", lambda state: state.beta[:-1])
    path = "hedgerow.studies.models:negative_binomial_regression"
    return _statistic(path, sentence, room.negative_binomial, read, scores.count_loss, ("log-loss", False), ask=False)


def firth_regression(sentence: str) -> Listing:
    """List Firth's logistic regression."""
    read = scores.reading("binomial", lambda state: state.newton.beta)
    return _statistic(
        "hedgerow.studies.models:firth_regression", sentence, room.firth, read, scores.log_loss, ("log-loss", False)
    )


def penalised_regression(sentence: str) -> Listing:
    """List the lasso, ridge and elastic net."""
    path = "hedgerow.studies.models:penalised_regression"
    return _statistic(path, sentence, room.penalised, scores.reading(), scores.explained(), ("D2", True))


CHOOSE = {
    "choose": (
        Literal["best", "one_se"],
        Field(
            "best",
            description='the penalty of the least deviance ("best"), or the largest within one standard error of it ("one_se")',
        ),
    )
}
"""The key by which a study chooses one penalty of a path."""


def penalty_path(sentence: str) -> Listing:
    """List the cross-validated path of penalties."""

    def read(schema: Schema, settings: Mapping[str, Any], state: Any) -> Fitted:
        return scores.reading(beta=lambda found: room.chosen(settings, found))(schema, settings, state)

    path = "hedgerow.studies.models:penalty_path"
    return _statistic(path, sentence, room.path, read, scores.explained(), ("D2", True), instead=CHOOSE)


def gradient_descent(sentence: str) -> Listing:
    """List gradient descent on sums; baselines ask everybody in every round."""
    read = scores.reading()
    return _statistic(
        "hedgerow.studies.models:gradient_descent",
        sentence,
        room.descent(read),
        read,
        scores.mean_loss(),
        ("loss", False),
        alone=lambda settings, rounds: {**settings, "batch": None},
    )


def hidden_gradient_descent(sentence: str) -> Listing:
    """List gradient descent whose model can be hidden from parties."""
    read = scores.reading(beta=lambda state: state.packed["theta"])
    path = "hedgerow.studies.models:hidden_gradient_descent"
    return _statistic(path, sentence, room.hidden(read), read, scores.explained(), ("D2", True))


def svm(sentence: str) -> Listing:
    """List the linear support vector machine."""
    read = scores.reading("binomial", lambda state: state.packed["beta"])
    path = "hedgerow.studies.models:svm"
    return _statistic(path, sentence, room.svm(read), read, scores.accuracy, ("accuracy", True), ask=False)


def huber_regression(sentence: str) -> Listing:
    """List Huber's regression."""
    read = scores.reading("gaussian", lambda state: state.lines.beta)
    path = "hedgerow.studies.models:huber_regression"
    return _statistic(path, sentence, room.huber, read, scores.absolute_error, ("mean absolute error", False))


def quantile_regression(sentence: str) -> Listing:
    """List quantile regression."""
    path = "hedgerow.studies.models:quantile_regression"
    read = scores.reading("gaussian")
    return _statistic(path, sentence, room.quantile, read, scores.mean_loss("check"), ("quantile loss", False))
