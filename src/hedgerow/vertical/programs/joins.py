"""Means by group over a join that nobody sees, as a study file names it: the parties are not aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.crypto.psi import JoinSums
from hedgerow.errors import StudyInvalid
from hedgerow.report import Outcome

from ..hidden_sums import HiddenMeans, hidden_means
from .cases import heart

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class JoinedMeans:
    """Means over a hidden join.

    Attributes
    ----------
    found : HiddenMeans
    round : int
    """

    found: HiddenMeans
    round: int = 1

    @property
    def saw(self) -> dict[str, tuple[str, ...]]:
        """Who learned what."""
        return {role: (said,) for role, said in self.found.saw.items()}


def settings_of_join(built: Any, settings: Settings) -> JoinSums:
    """The rules of `[alignment]`, as they hold for a hidden join.

    Raises
    ------
    StudyInvalid (HR-101)
        Another protocol, or more than two parties.
    """
    section = built.study.alignment
    if section.by != "x25519" or len(built.held) != 2:
        raise StudyInvalid(
            f"a hidden join is of two parties by x25519; there are {len(built.held)}, by {section.by}.",
            remedy="Leave alignment.by out, and let two parties hold the columns.",
        )
    return JoinSums(section.least, section.most, section.ratio, section.normal, section.small_domain)


def show_joined(handle: Any, settings: Settings, state: JoinedMeans) -> Outcome:
    """Show the means."""
    told = state.found.means["count"].notna()
    metrics = {"groups told": float(told.sum()), "people in them": float(state.found.means.loc[told, "count"].sum())}
    return Outcome(metrics, {"Means by group": state.found.means}, coefficients=state.found.means)


def learns_of_join(settings: Settings, roles: Any) -> dict[str, tuple[str, ...]]:
    """Who learns what of a hidden join."""
    both = "how long both lists are; not who is on the other's, nor which of its own people are"
    told = "counts and means of groups of enough people, of whom nobody learns who they are"
    return {"party": (both, told), "hub": ("sizes of sealed letters", told), "world": (told,)}


@program(
    "Means of one party's columns in groups of another's, over a join that stays hidden from both.",
    columns="apart",
    takes="apart",
    bind={"on": lambda built, settings: built.study.alignment.on, "rules": settings_of_join},
    outcome=show_joined,
    learns=learns_of_join,
    case=lambda: heart(of=["serum_creatinine"], by="sex"),
)
def hidden_join_means(
    federation: Federation, *, of: list[str], by: str, on: str, rules: JoinSums, start: JoinedMeans | None = None
) -> Iterator[JoinedMeans]:
    """Means over a hidden join; see `hedgerow.vertical.hidden_sums.hidden_means`.

    Parameters
    ----------
    of : list of str
        Numbers with declared ranges, all of one party.
    by : str
        A category or binary column of the other party.
    on, rules : str, JoinSums
        Of `[alignment]`.
    """
    yield JoinedMeans(hidden_means(federation, of, by, on=on, settings=rules))
