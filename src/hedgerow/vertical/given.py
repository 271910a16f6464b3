"""What local functions give away, in the field's words: for `aligned.saw`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hedgerow.core.party import Local
from hedgerow.core.question import function_of

Function = TypeVar("Function", bound=Callable[..., Any])


def gives(words: str, *, told: str | None = None) -> Callable[[Function], Function]:
    """Say what a local function gives, such as "linear predictors", and what parties are told for it.

    Parameters
    ----------
    told : str, optional
        What its broadcast is, where parties learn from it.
    """

    def say(function: Function) -> Function:
        function.gives, function.told = words, told  # type: ignore[attr-defined]
        return function

    return say


def given_by(local: Local) -> str:
    """What a local function gives; its name where it does not say."""
    function = function_of(local)
    return str(getattr(function, "gives", function.__name__))


def told_for(local: Local) -> str | None:
    """What parties are told so that they can compute it."""
    found: str | None = getattr(function_of(local), "told", None)
    return found
