"""Root records of a study: records of the server with which a rule compares what parties send, and nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from hedgerow.core.randomness import Streams
from hedgerow.errors import StudyInvalid

if TYPE_CHECKING:
    from hedgerow.core.declaration import Declaration
    from hedgerow.data import Table

RULE_KEYS = ("rule", "row_rule")
"""Keys of `[program]` that may hold a rule of rows."""


def with_root(one: Declaration, settings: dict[str, Any], test: Table | None, seed: int) -> tuple[dict[str, Any], Table | None]:
    """Take the root records that a rule asks for off the server's table.

    Parameters
    ----------
    one : Declaration
    settings : dict
        Of the program. Where its rule has `root = N`, it becomes a rule with a table of N records.
    test : Table or None
        The server's table.

    Returns
    -------
    dict, Table or None
        Settings, and the server's table without those records: nothing is measured on them.

    Raises
    ------
    StudyInvalid (HR-101)
        The server has no table, or too small a one.
    """
    key = next((key for key in RULE_KEYS if isinstance(settings.get(key), Mapping)), None)
    if key is None:
        return settings, test
    from hedgerow.learn.robust.named import RuleSetting, rule_from

    if get_type_hints(one.function).get(key) != RuleSetting:
        return settings, test
    rule = rule_from(settings[key])
    number = rule.root_records
    if number is None:
        return settings, test
    whole = isinstance(number, int) and not isinstance(number, bool) and number > 0
    if not whole or test is None or number >= len(test):
        held = "holds none" if test is None else f"holds {len(test)}"
        raise StudyInvalid(
            f"program.{key} wants {number!r} root records, and the server {held}.",
            remedy="Root records are taken off the server's table, and some must be left to measure on: "
            "evaluation.holdout = 0.2 gives it one.",
        )
    order = Streams(seed).stream(0, "server", "root records of a rule").permutation(len(test))
    root, left = test.take(np.sort(order[:number])), test.take(np.sort(order[number:]))
    return settings | {key: rule.with_root(root)}, left
