"""Who saw what in a run, and the letters behind it: roles with sentences, and bytes by role and purpose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hedgerow.report import Grid
from hedgerow.report.seen import LETTERS

from .sections import HUB, WORLD

Saw = tuple[tuple[str, tuple[str, ...]], ...]


def saw_of(saw: Mapping[str, Sequence[str]], parties: Sequence[str]) -> Saw:
    """Roles and their sentences: the parties in their order, the hub, the world; sentences begin with a capital and end."""
    roles = [*parties, HUB, WORLD]
    return tuple((role, tuple(map(sentence, saw.get(role, ())))) for role in [*roles, *(set(saw) - set(roles))])


LOCALS = {
    "backward": "gradients",
    "derivatives": "first and second derivatives",
    "forward": "outputs of layers",
    "in_bins": "bins of columns",
    "level_rows": "levels of a group",
    "own_columns": "columns of the formula",
    "predictor_rows": "linear predictors",
    "scored": "losses and hits",
    "slopes": "slopes of the loss",
    "value_rows": "values of columns",
}
"""What local functions compute, in words; others are told by their names."""


def sentence(words: str) -> str:
    """Words as a sentence."""
    words = re.sub(r"\w+", lambda found: LOCALS.get(found[0], found[0]), words.strip())
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def letters_of(traffic: Iterable[Any], parties: Sequence[str]) -> Grid | None:
    """Letters by purpose and role: how often, in how many rounds, the bytes that each role sent, and processor time.

    Parameters
    ----------
    traffic : iterable of hedgerow.crypto.peer_protocol.Traffic
        Of each question: purpose, rounds, bytes by (sender, recipient), seconds by role.
    """
    kinds: dict[str, list[Any]] = {}
    for one in traffic:
        kinds.setdefault(one.purpose, []).append(one)
    if not kinds:
        return None
    roles = [*parties, HUB]
    rows = [_row(purpose, asked, roles) for purpose, asked in kinds.items()]
    if len(rows) > 1:
        rows.append(_row("all", [one for asked in kinds.values() for one in asked], roles))
    columns = ("purpose", "questions", "rounds", *(f"bytes from {role}" for role in roles))
    note = "Bytes are those of letters, without the seals of boxes. Seconds are processor time, of all parties and of the hub."
    return Grid(LETTERS, (*columns, "parties, seconds", "hub, seconds"), tuple(rows), note)


def _row(purpose: str, asked: Sequence[Any], roles: Sequence[str]) -> tuple[Any, ...]:
    sent = dict.fromkeys(roles, 0)
    for one in asked:
        for (sender, _), n in one.bytes.items():
            sent[sender] = sent.get(sender, 0) + int(n)
    times = [round(sum(one.seconds.get(who, 0.0) for one in asked), 3) for who in ("parties", HUB)]
    return (purpose, len(asked), sum(one.rounds for one in asked), *sent.values(), *times)


def bytes_in_all(traffic: Iterable[Any]) -> int:
    """Bytes of all letters."""
    return sum(int(n) for one in traffic for n in one.bytes.values())
