"""What a simulation with liars has to show: the success of their act, the same of a model without them, and who did what.

success    of the server's test records of other classes, stamped with the trigger (or those of the source class as they are),
           the share that is given the target. Records of the target's own class are left out.
clean twin the same study with nobody acting, trained once more to the same round, and measured likewise: what an attack
           achieves, and what it costs, is the difference.

Releases : nothing; a clean twin's ledger is its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.federation import inside
from hedgerow.core.judged_rows import JudgedRows, in_all
from hedgerow.data import Table
from hedgerow.engines import simulate
from hedgerow.errors import BudgetExhausted, DisclosureExceeded, StudyInvalid
from hedgerow.report import Grid

from .attack import LIES_IN_RECORDS, OMNISCIENT, STRENGTHS, AttackSection
from .first_question import first_unit
from .liars import class_of, classes_of, trigger_of

if TYPE_CHECKING:
    from .build import Built
    from .study import Study

BACKDOOR, TARGETED = "backdoor success", "targeted success"
"""Metrics of the acts that want one answer."""

VERIFIED = 'protection.aggregation = { by = "additive", verified = true }'
GROUPS = "groups of secure sums with a median (program.rule) tolerate a forged row in less than half of the groups"


# ---- success --------------------------------------------------------------------------------------------------------
def success(built: Built, state: Any) -> dict[str, float]:
    """How often a state predicts the target of an act for the server's test records of other classes; empty without one.

    Stamped records are chosen by their true class, never by what is predicted.
    """
    attack, score = built.study.attack, built.listing.score
    if attack is None or not attack.aimed or built.test is None or score is None or built.study.evaluation.on != "test":
        return {}
    if built.listing.metric(built.schema)[0] != "accuracy":
        return {}
    table = aimed_at(attack, built.complete(built.test))
    name = TARGETED if attack.trigger is None else BACKDOOR
    return {name: float(score(built.settings, state, built.schema, table))}


def aimed_at(attack: AttackSection, test: Table) -> Table:
    """The test records that an act is about, with the trigger if there is one, and with the target as their label.

    Raises
    ------
    StudyInvalid (HR-101)
        There is none.
    """
    column = classes_of(attack, test.schema)
    y, target = test.columns[column.name], class_of(column, attack.target)
    about = (y != target) & ~column.lacks(y)
    if attack.source is not None:
        about &= y == class_of(column, attack.source)
    if not about.any():
        raise StudyInvalid(
            "the server's table holds no record of another class, on which the success of the act could be measured.",
            remedy="Give it more records: evaluation.holdout = 0.3.",
        )
    found = test.take(np.flatnonzero(about))
    columns = dict(found.columns)
    if attack.trigger is not None:
        columns |= trigger_of(attack, test.schema).stamped(columns)
    return replace(found, columns=columns | {column.name: np.full_like(found.columns[column.name], target)})


def refuse_unmeasurable(attack: AttackSection, test: Table | None) -> None:
    """Refuse classes, columns and values that records do not have, and a server's table without records of other classes.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    if attack.aimed and test is not None:
        aimed_at(attack, test)


def clean_twin(built: Built, rounds: int, engine: Any) -> dict[str, float]:
    """Metrics of the same study with nobody acting, after so many rounds or where its budget ends before.

    Parameters
    ----------
    engine : Engine
        As the study names it, without liars.
    """
    seed = built.study.simulation_seed
    federation = simulate(built.table, built.partition, seed=seed, engine=engine).protect(**built.study.protection.slots())
    inside(federation).run.holdings = built.run.holdings
    if built.study.budget is not None:
        federation = federation.within(built.study.budget.budget())
    state = None
    try:
        for state in built.listing.program(built.settings, built.test)(federation):
            if state.round >= rounds:
                break
    except (BudgetExhausted, DisclosureExceeded):
        pass
    return {} if state is None else replace(built, federation=federation).metrics(state)


# ---- the report -----------------------------------------------------------------------------------------------------
def attack_grids(built: Built, measured: Mapping[str, float], twin: Mapping[str, float]) -> tuple[Grid, ...]:
    """Who acted, how, and what of it the server held; what the run measured, beside its clean twin; rows that were too long.

    Rows that were too long are told of every run that had some, whether or not its study has an attack.
    """
    attack, found = built.study.attack, list[Grid]()
    if attack is not None:
        rows = tuple((what, said) for what, said in told(built, attack) if said)
        note = "A simulation: programs, channel and ledger know of no act; the ledger names the function that was asked."
        found.append(Grid("Parties that lie", ("", "what"), rows, note))
        beside = [(name, value, twin[name]) for name, value in measured.items() if name in twin]
        if beside:
            note = "The clean twin is the same study with nobody acting, trained once more to the same round."
            if attack.aimed:
                note += f" {_measured_on(built, attack)}"
            found.append(Grid("With and without the attack", ("metric", "this run", "clean twin"), tuple(beside), note))
    if built.run.overlong:
        found.append(overlong_grid(built.run.overlong))
    if built.run.judged:
        found.append(judged_grid(built.run.judged))
    return tuple(found)


def overlong_grid(overlong: Counter[str]) -> Grid:
    """Parties whose rows were longer than their bound, and how often."""
    rows = tuple(sorted(overlong.items(), key=lambda one: (-one[1], one[0])))
    note = (
        "The server holds each row that it sees to the bound of the question: one that is longer counts as zeros. A party that "
        "clips sends none."
    )
    return Grid("Rows longer than their bound", ("party", "rows that counted as zeros"), rows, note)


def judged_grid(judged: Sequence[JudgedRows]) -> Grid:
    """What rows were proved to be, by question, and how many were refused: by number alone."""
    asked = dict[tuple[str, str], list[JudgedRows]]()
    for one in judged:
        asked.setdefault((one.query, one.proved or "nothing: a simulation without proofs"), []).append(one)
    rows = tuple(
        (query, proved, len(found), f"{refused} of {came}")
        for (query, proved), found in asked.items()
        for refused, came in [in_all(found)]
    )
    note = (
        "What is proved is the bound of a party; of one per record that is the most records of a party times it. A row that is "
        "refused is in no total, and no party is told why. It holds while all aggregators are honest."
    )
    return Grid("Rows that were proved", ("question", "a party's row", "times asked", "rows refused"), rows, note)


def told(built: Built, attack: AttackSection) -> list[tuple[str, str]]:
    """What an attack is, in a word and a sentence each; also before any party is asked."""
    liars = liars_in(built)
    if liars is None:
        return [("act", "none: nobody lies")]
    names, n = liars.parties, built.federation.size
    return [
        ("who", f"{len(names)} of {n} parties: {', '.join(names)}"),
        ("act", act_in_words(attack, n, len(names))),
        ("kind", kind_in_words(attack)),
        ("knows", knows_in_words(attack)),
        ("when", when_in_words(attack)),
        ("held", held_in_words(built, attack)),
    ]


def lying_facts(built: Built) -> tuple[tuple[str, int], ...]:
    """How many parties lie, and rows that counted as zeros, where there are any."""
    liars, overlong = liars_in(built), built.run.overlong.total()
    facts = (("parties that lie", 0 if liars is None else len(liars.parties)), ("rows beyond their bound", overlong))
    return tuple((name, number) for name, number in facts if number)


def liars_in(built: Built) -> Any:
    """The liars among a study's parties, if there are any."""
    acts = getattr(built.run.engine, "acts", None)
    return None if acts is None else acts.liars


def act_in_words(attack: AttackSection, n: int = 0, f: int = 0) -> str:
    """What liars do, with the numbers that the study gives; n parties, among whom f lie, where that is known."""
    strength = STRENGTHS.get(attack.act)
    words = {
        "none": "none: nobody lies",
        "label-flip": "label flip: y becomes classes - 1 - y",
        "noise": "noise: features are drawn anew from their declared ranges",
        "backdoor": f"backdoor: {attack.share:g} of a liar's records carry a trigger, and the label {attack.target!r}",
        "single-target": f"single target: records of {attack.source!r} get the label {attack.target!r}",
        "replace": "replacement: own rows times a factor, so that the mean is theirs",
        "sign-flip": "sign flip: own rows times a negative factor",
        "scale": "scaling: own rows times a factor",
        "gaussian": "Gaussian noise instead of rows",
        "alie": "a little is enough: the mean less a part of the standard deviation, coordinate by coordinate",
        "ipm": "inner product: the mean with its sign turned",
        "min-max": "min-max: as far from the mean as rows are from each other",
        "free-rider": "free rider: no work is done",
        "sybil": "sybils: one participant under several names sends one row",
    }[attack.act]
    if strength is not None:
        value = attack.strength if attack.strength is not None else strength.default
        value = n / f if value is None and f and attack.act == "replace" else value
        words += f" ({strength.means}: " + ("by the numbers of parties)" if value is None else f"{value:g})")
    words += f"; rows times {attack.boost:g}" if attack.boost != 1 else ""
    return words + ("; all send the row of the first" if attack.sybils else "")


def forges(attack: AttackSection) -> bool:
    """Whether a row is changed behind its party's clip."""
    return attack.kind == "forge" and (attack.act not in LIES_IN_RECORDS or attack.boost != 1 or attack.sybils)


def kind_in_words(attack: AttackSection) -> str:
    """Whether rows pass the party's own clip."""
    if forges(attack):
        return "forge: rows are changed behind the party's own clip and noise"
    return "lie: what liars make goes through their own clip, noise and masks"


def knows_in_words(attack: AttackSection) -> str:
    """Whose rows liars see."""
    if attack.act not in OMNISCIENT:
        return "their own records and rows" if attack.act != "sybil" and not attack.sybils else "the rows of all liars"
    return {
        "own": "their own rows",
        "colluders": "the rows of all liars",
        "all": "the rows of ALL parties, which is the worst case of the literature: no party of a federation sees them",
    }[attack.knows]


def when_in_words(attack: AttackSection) -> str:
    """In which questions they act."""
    if (attack.from_round, attack.every, attack.until) == (1, 1, None):
        return "in every question of the program"
    every = "every question" if attack.every == 1 else f"every {attack.every} questions"
    until = "" if attack.until is None else f" to question {attack.until}"
    return f"in {every} of the program from question {attack.from_round}{until}"


def held_in_words(built: Built, attack: AttackSection) -> str:
    """What holds the rows of liars to a bound, where, and what cannot."""
    shown = built.federation.protection
    if not forges(attack):
        if shown.clip is not None or shown.noisy:
            return "Each liar's row passes its own clip."
        if shown.hides_rows:
            return "No clip holds a row, but a liar's own program sends nothing beyond the range of the hidden sum."
        return "No bound holds a row: declare one by protection.clip."
    if inside(built.federation).channel.aggregation.verified:
        return (
            "The aggregators, while all of them are honest: a row is in a total where it is proved to be within its bound, and "
            "one that is longer is left out. What lies within the bound passes, whatever it says."
        )
    if shown.hides_rows:
        return (
            "Nothing: the server sees no row behind secure aggregation, so a forged row moves a total as far as the ring has "
            f"room. What can be done: {GROUPS}; rows that the server sees; or rows that are proved to be within their bound, "
            f"{VERIFIED}."
        )
    if shown.noise_at == "party":
        return (
            "Nothing: rows that bear their party's own noise have no bound, so a forged row moves a total as far as it likes."
        )
    if shown.clip is None and not shown.noisy:
        return "Nothing: no bound is declared. protection.clip declares one, to which the server holds the rows that it sees."
    if first_unit(built) == "record":
        return (
            "Nothing: bounds per record hold what each record adds, inside the party. The server does not know how many "
            "records a party has, so a forged row has no largest length. What can be done: a bound per party (protection.clip)."
        )
    return "The server sees rows and holds each to its bound: one that is longer counts as zeros."


def _measured_on(built: Built, attack: AttackSection) -> str:
    """The records on which success is measured."""
    if built.test is None:
        return "The server holds no table, so the success of the act is not measured."
    n = len(aimed_at(attack, built.complete(built.test)))
    if attack.trigger is None:
        return f"Targeted success: {n:,} test records of {attack.source!r}, and the share that is given {attack.target!r}."
    return f"Backdoor success: {n:,} stamped test records of other classes, and the share that is given {attack.target!r}."


def attack_in_words(study: Study) -> str:
    """The attack of a study in a sentence, before its records are read; empty without one."""
    attack = study.attack
    if attack is None or attack.act == "none":
        return "" if attack is None else act_in_words(attack)
    given = attack.parties
    who = ", ".join(given) if isinstance(given, tuple) else f"a share of {given:g}, drawn by the seed"
    kind = "forge their rows" if forges(attack) else "lie"
    said = f"parties of a simulation ({who}) {kind}: {act_in_words(attack)}; {when_in_words(attack)}"
    return f"{said}; they know {knows_in_words(attack)}"


def sentence(built: Built) -> str:
    """The attack of a study in one sentence; empty without one."""
    attack, liars = built.study.attack, liars_in(built)
    if attack is None or liars is None:
        return ""
    kind, n, f = "forge their rows" if forges(attack) else "lie", built.federation.size, len(liars.parties)
    return f"{f} of {n} simulated parties {kind}: {act_in_words(attack, n, f)}."
