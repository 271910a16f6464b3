"""Gradient queries: linear models of owners that answer with noisy gradients, each under an epsilon of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .answers import Answers, multiplier
    from .async_queries import AnswersInTurn, async_queries, gradient_in_turn
    from .fitness import noiseless, optimum, pooled, relative_fitness
    from .grid import Trial, looks_of, trials_of
    from .inputs import Inputs, inputs
    from .lengths import answers_for, bound_of, length_of, longest_of
    from .losses import QueryLoss, loss_of
    from .program import QueryState, gradient, gradient_queries, private_gradient
    from .steps import Steps
    from .trials import TrialState, partial_gradient, private_gradients, query_trials

__all__ = [
    "Answers",
    "AnswersInTurn",
    "Inputs",
    "QueryLoss",
    "QueryState",
    "Steps",
    "Trial",
    "TrialState",
    "answers_for",
    "async_queries",
    "bound_of",
    "gradient",
    "gradient_in_turn",
    "gradient_queries",
    "inputs",
    "length_of",
    "longest_of",
    "looks_of",
    "loss_of",
    "multiplier",
    "noiseless",
    "optimum",
    "partial_gradient",
    "pooled",
    "private_gradient",
    "private_gradients",
    "query_trials",
    "relative_fitness",
    "trials_of",
]

lazily(__name__)
