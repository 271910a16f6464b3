"""Rules by name, as studies write them: `rule = "trimmed"`, or `rule = { name = "groups", groups = 5, of = "median" }`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hedgerow.errors import SettingsInvalid, suggestion

from .buckets import Bucketing
from .centres import CentredClip, GeometricMedian
from .columns import Median, TrimmedMean
from .groups import Groups
from .history import FoolsGold
from .nearest import Bulyan, Krum, MultiKrum
from .norms import NormBound, NormNoise
from .plain import PlainMean
from .rule import Rule
from .trust import FLTrust

RULES: Mapping[str, type[Rule]] = {
    "mean": PlainMean,
    "median": Median,
    "trimmed": TrimmedMean,
    "krum": Krum,
    "multi-krum": MultiKrum,
    "bulyan": Bulyan,
    "geometric-median": GeometricMedian,
    "centred-clip": CentredClip,
    "bucketing": Bucketing,
    "norm": NormBound,
    "norm-noise": NormNoise,
    "foolsgold": FoolsGold,
    "fltrust": FLTrust,
    "groups": Groups,
}
"""Rules by the names that studies give them."""

RuleSetting = str | dict[str, Any] | Rule
"""A rule as it is set: its name, a mapping of its name and its settings, or the rule itself."""

ROUNDING = 1e-9
"""A share of parties whose product with their number is this near a whole number is that number."""


def rule_from(given: Any) -> Rule:
    """Make a rule of its name, or of a mapping with `name` and its settings; a rule is returned as it is.

    Raises
    ------
    SettingsInvalid (HR-511)
        No such rule, with the nearest name; a setting that it does not have, or that it needs.
    """
    if isinstance(given, Rule):
        return given
    if not isinstance(given, str | Mapping):
        raise SettingsInvalid(f"rule is {given!r}.", remedy=f"Give a name, one of {', '.join(RULES)}, or a rule.")
    settings: dict[str, Any] = {"name": given} if isinstance(given, str) else dict(given)
    name = settings.pop("name", None)
    kind = RULES.get(name) if isinstance(name, str) else None
    if kind is None:
        near = suggestion(str(name), list(RULES)) if name is not None else 'Say which: rule = { name = "median" }.'
        raise SettingsInvalid(f"no rule {name!r}.", remedy=near)
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(settings.keys() - known.keys()):
        has = f"It has {', '.join(known)}." if known else "It has no settings."
        raise SettingsInvalid(f"the rule {name} has no setting {', '.join(map(repr, unknown))}.", remedy=has)
    if "of" in settings:
        settings["of"] = rule_from(settings["of"])
    try:
        made: Rule = kind(**settings)
    except TypeError as error:
        lacking = [key for key, one in known.items() if f"'{key}'" in str(error)]
        raise SettingsInvalid(
            f"the rule {name} needs {', '.join(lacking)}.",
            remedy=f"For example rule = {{ name = {name!r}, {lacking[0]} = ... }}.",
        ) from error
    return made


def check_expect(expect: float | None, rule: Rule) -> None:
    """Refuse what is neither a share nor a number of parties, and a rule without the number that it needs.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    number = isinstance(expect, int | float) and not isinstance(expect, bool)
    lawful = expect is None or (number and (0 <= expect < 1 or float(expect).is_integer()) and expect >= 0)
    if not lawful:
        raise SettingsInvalid(
            f"expect is {expect!r}.", remedy="It is the share of the asked parties that may lie, below one, or their number."
        )
    if rule.needs_number and expect is None and rule.expects is None:
        raise SettingsInvalid(
            f"the rule {rule.name} must know how many parties may lie.",
            remedy="Say it: expect = 0.2, a share of the parties that are asked, or expect = 4, their number.",
        )
    if rule.needs_number and expect is not None and rule.expects is not None:
        raise SettingsInvalid(
            f"the rule {rule.name} is for f = {rule.expects}, and expect is {expect!r} besides.", remedy="Give one of them."
        )


def number_of(expect: float | None, n: int) -> int | None:
    """How many of n parties may lie: a share of them, rounded up, or the number itself; None where none is given."""
    if expect is None:
        return None
    return math.ceil(expect * n - ROUNDING) if 0 < expect < 1 else int(expect)
