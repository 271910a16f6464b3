"""What a run publishes, as a list, in sentences and as a table; the kinds are in `publication_kinds`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hedgerow.core.ledger import Entry, Ledger
from hedgerow.privacy.statement import Publication, Status
from hedgerow.report import Grid

from .publication_kinds import HELD, KINDS, held, local, own_table

if TYPE_CHECKING:
    from .build import Built


def published(built: Built, ledger: Ledger) -> tuple[Publication, ...]:
    """Return what a run of a study publishes, or would publish: its ledger may be that of a rehearsal."""
    entries = [entry for entry in (*ledger.others, *ledger.entries) if entry.event.kind != "none"]
    split: dict[bool, list[Entry]] = {False: [], True: []}
    for entry in entries:
        split[entry.event.kind in ("nonprivate", "rows")].append(entry)
    found = [*_answers("answers", split[False]), *_answers("open answers", split[True])]
    if entries:
        found.append(_made("results", built, status="exposed" if split[True] else "charged", unit=found[0].unit))
    if built.listing.claim is not None and (said := built.listing.claim(built.settings)):
        found.append(_made("claims", built, claim=said))
    found += [_made(name, built) for name, kind in KINDS.items() if kind.there(built)]
    return tuple(found)


def exposed(built: Built, found: Iterable[Publication]) -> str:
    """Say in sentences what a run publishes of records without protection, beside what its ledger has."""
    found, said = tuple(found), []
    if held(built):
        said.append(f"{_share(built):.3g} % of the records ({_tested(built):,}) were used as a test table without protection.")
    if own_table(built):
        said.append(f"{_tested(built):,} records of others were used as a test table without protection.")
    names = [KINDS[name].short for name, kind in KINDS.items() if kind.short and kind.there(built)]
    if names:
        *most, last = names
        listed = f"{', '.join(most)} and {last}" if most else last
        said.append(f"The run publishes exact values of {HELD}, without protection and outside any epsilon: {listed}.")
    said += [f"{one.what[:1].upper()}{one.what[1:]}: {one.how}." for one in found if one.what == KINDS["claims"].what]
    return " ".join(said)


def table_of(found: Iterable[Publication]) -> Grid:
    """The list as a table of a report."""
    rows = tuple((one.what, one.whose, one.status, one.unit or None, one.how) for one in found)
    note = (
        "Charged: paid for in the ledger. Exposed: computed without protection, outside any epsilon. Declared: said by people, "
        "as public. Public: not computed from records."
    )
    return Grid("What is published", ("what", "whose", "status", "unit", "how"), rows, note)


def _answers(name: str, entries: list[Entry]) -> list[Publication]:
    if not entries:
        return []
    kind, noises = KINDS[name], list(dict.fromkeys(entry.mechanism for entry in entries))
    units = list(dict.fromkeys(entry.unit for entry in entries if entry.unit)) if name == "answers" else []
    noise = noises[0] if len(noises) == 1 else f"{len(noises)} mechanisms"
    what, how = kind.what.format(n=len(entries)), kind.how.format(noise=noise)
    if len(entries) == 1:
        what = what.replace("answers to questions", "answer to a question")
    return [Publication(what, kind.whose, kind.status, " and ".join(units), how)]


def _made(name: str, built: Built, *, status: Status | None = None, unit: str = "", claim: str = "") -> Publication:
    kind, words = KINDS[name], {"share": _share(built), "tested": _tested(built), "source": _source(built), "claim": claim}
    how = "by nothing: the answers have no noise" if status == "exposed" else kind.how.format(**words)
    return Publication(kind.what.format(**words), kind.whose.format(**words), status or kind.status, unit, how)


def _tested(built: Built) -> int:
    return sum(len(table) for table in built.of_server.values() if table is not None)


def _share(built: Built) -> float:
    n = _tested(built)
    return 100 * n / max(n + len(built.table), 1)


def _source(built: Built) -> str:
    if not local(built):
        return "the stations"
    return f"the catalogue, for {built.study.data.name!r}" if built.study.data.name else "the study's author"
