"""Beside the studies: what is left of budgets, and the latest entries of the journal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.network.station.config import GuardSection
from hedgerow.network.station.journal import StationEntry
from hedgerow.network.station.review import Spent
from hedgerow.network.station.submissions import Submission
from hedgerow.report.markup import Html, tag

from .frame import Frame
from .reading import clean, title_of, when
from .records import newest, repeated, said

HISTORIES = 4
"""Bars of one budget, for parties that have spent differently."""

LATEST = 6
"""Entries of the journal."""

LOW = 0.25
"""Below this part of a budget, its bar warns."""


def sidebar(frame: Frame, submissions: Sequence[Submission], spent: Sequence[Spent], latest: Sequence[StationEntry]) -> Html:
    """Budgets, and the latest entries of the journal."""
    titles = {submission.study: title_of(submission) for submission in submissions}
    items = [
        tag(
            "li",
            tag("time", when(entry.at, frame.timezone)),
            said(entry) + repeated(times),
            f": {titles[entry.study]}" if entry.study in titles else None,
        )
        for entry, times in newest(latest)[:LATEST]
    ]
    feed = tag("ol", *items, class_="feed") if items else tag("p", "Nothing was asked yet.", class_="note")
    more = tag("p", tag("a", "The whole journal", href="/journal"), class_="more") if items else None
    return tag(
        "aside",
        tag("section", tag("h2", "Budget left"), *budgets(frame.config.guard, spent)),
        tag("section", tag("h2", "Latest"), feed, more),
    )


def budgets(guard: GuardSection, spent: Sequence[Spent]) -> list[Html]:
    """A bar for each budget."""
    if guard.budget is None and guard.study_budget is None:
        return [tag("p", "The guard sets no budget (guard.budget, guard.study_budget).", class_="note")]
    by_name: dict[str, list[Spent]] = {}
    for each in spent:
        by_name.setdefault(each.whose, []).append(each)
    found = []
    if guard.budget is not None and "everything" not in by_name:
        found.append(bar("Over everything", Spent("everything", guard.budget.budget(), 0.0, 0), alone=True))
    for name, ones in by_name.items():
        heading = "Over everything" if name == "everything" else clean(name, 120)
        found += [bar(heading, each, alone=len(ones) == 1) for each in ones[:HISTORIES]]
        if len(ones) > HISTORIES:
            rest = sum(each.n_parties for each in ones[HISTORIES:])
            found.append(tag("p", f"and {rest:,} parties that have spent less", class_="note"))
    return found


def bar(heading: str, one: Spent, *, alone: bool) -> Html:
    """What is left of a budget."""
    whole, part = one.budget.epsilon, (one.left / one.budget.epsilon if math.isfinite(one.budget.epsilon) else 1.0)
    gone = "everything" if math.isinf(one.epsilon) else f"{one.epsilon:.3g}"
    rest = f"{one.left:.3g}"
    words = f"{gone} spent; delta {one.budget.delta:g}, for each {one.budget.unit}"
    whom = "" if alone else f" of {one.n_parties:,} parties"
    rest_bar = tag("rect", class_="rest low" if part < LOW else "rest", width=f"{100 * part:.4g}%", height="10", rx="3")
    track = tag("rect", width="100%", height="10", rx="3")
    return tag(
        "div",
        tag("h3", heading + whom),
        tag("p", rest, " ", tag("small", f"of epsilon {whole:g}"), class_="left"),
        tag("svg", track, rest_bar, class_="bar", role="img", aria_label=f"{rest} of {whole:g} left"),
        tag("p", words, class_="note"),
        class_="budget",
    )
