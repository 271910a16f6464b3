"""What follows from the numbers of a matrix: sentences from medians, or from ranges over seeds that do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .matrix_measured import ACCURACY, LOST, SUCCESS, MatrixMeasured, holds, price


def sentences(found: MatrixMeasured) -> list[str]:
    """What a reader should take from the picture; each follows from medians, or from ranges that do not overlap."""
    if found.plain is None:
        return []
    return [*_costs(found), *_backdoors(found), *_weaknesses(found), *_survivors(found)]


def _costs(found: MatrixMeasured) -> list[str]:
    said = []
    for partition in found.partitions:
        prices = {rule: price(found, partition, rule) for rule in found.rules if rule != found.plain}
        known = {rule: at.median for rule, at in prices.items() if at is not None}
        if not known:
            continue
        dearest, where = max(known, key=lambda rule: known[rule]), f" on {partition}" if partition else ""
        if known[dearest] < 0.01:
            said.append(f"While nobody lies, no rule costs a point of accuracy{where}.")
        else:
            said.append(f"While nobody lies, {dearest} costs most{where}: {100 * known[dearest]:.0f} points of accuracy.")
    return said


def _backdoors(found: MatrixMeasured) -> list[str]:
    return [
        f"{_capital(act)}{_on(partition)}: the backdoor passes {_listed(through)}."
        for partition in found.partitions
        for act in found.aimed
        if (through := _where(found, lambda rule, p=partition, a=act: _passes(found, p, a, rule)))
    ]


def _passes(found: MatrixMeasured, partition: str, act: str, rule: str) -> str:
    at = found.at(SUCCESS, partition, act, rule)
    return f"{rule} ({100 * at.median:.0f} %)" if at is not None and at.median >= 0.5 else ""


def _weaknesses(found: MatrixMeasured) -> list[str]:
    """Rules that are worse than the mean under an act, and lose more by it than the mean does: the defence is the weakness."""
    assert found.plain is not None
    said = []
    for partition in found.partitions:
        for act in (act for act in found.acts if act != found.clean):
            mean = found.at(ACCURACY, partition, act, found.plain)
            worse = _where(found, lambda rule, p=partition, a=act: _weaker(found, p, a, rule))
            if worse and mean is not None:
                of_mean = f"the mean ({100 * mean.median:.0f} %)"
                said.append(f"{_capital(act)}{_on(partition)} is worse for {_listed(worse)} than for {of_mean}.")
    return said


def _weaker(found: MatrixMeasured, partition: str, act: str, rule: str) -> str:
    """A rule whose most accuracy over seeds is below the least of the mean, and from which the act takes more."""
    assert found.plain is not None
    at, mean = found.at(ACCURACY, partition, act, rule), found.at(ACCURACY, partition, act, found.plain)
    lost, of_mean = (
        found.paired(ACCURACY, (partition, found.clean, one), (partition, act, one)) for one in (rule, found.plain)
    )
    if at is None or mean is None or lost is None or of_mean is None:
        return ""
    weaker = at.most < mean.least and lost.median > of_mean.median + LOST
    return f"{rule} ({100 * at.median:.0f} %)" if weaker else ""


def _survivors(found: MatrixMeasured) -> list[str]:
    acts = [act for act in found.acts if act != found.clean]
    every = [
        rule
        for rule in found.rules
        if all(holds(found, partition, act, rule) for partition in found.partitions for act in acts)
    ]
    if not acts:
        return []
    where = "on both partitions" if len(found.partitions) == 2 else "on every partition" if len(found.partitions) > 2 else ""
    return [
        f"Against every act {where}".rstrip() + f" holds: {', '.join(every)}." if every else "No rule holds against every act."
    ]


def _where(found: MatrixMeasured, words: Callable[[str], str]) -> list[str]:
    return [said for rule in found.rules if (said := words(rule))]


def _on(partition: str) -> str:
    return f" on {partition}" if partition else ""


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
