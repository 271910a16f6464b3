"""What holds after every schedule, whatever happened in it; each check says what it found as a sentence.

results    a study that finished has the result of exactly the parties that took part in its last question
privacy    each answer left once, after its entry in the journal, and within the budget of the guard that let it go
letters    no number stands for two letters or two answers, and an answer is taken for the letter that it answers
rail       nothing on it can be read
journals   both chains hold, and what a station refused is known on both sides
the end    finished, refused, or waiting for somebody who has not come back
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
from clinic_house import HUB, NAMES, READABLE, records, station_config
from simulation import EPOCH, World

from hedgerow.network.coordinator.journal import refusal
from hedgerow.network.coordinator.store import Store
from hedgerow.network.station.accounts import Account
from hedgerow.network.station.base import Base
from hedgerow.network.station.journal import StationJournal
from hedgerow.network.station.submissions import Submissions
from hedgerow.privacy import Budget
from hedgerow.wire.envelope import disclose
from hedgerow.wire.question import inbox, question


@cache
def pooled_fit(names):
    """Newton's method on all records of these stations."""
    systolic, cotinine, y = (np.concatenate([records(name)[column] for name in names]) for column in records(names[0]))
    X, beta = np.column_stack([np.ones(len(y)), systolic, cotinine]), np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ beta))
        beta = beta + np.linalg.solve((X * (p * (1 - p))[:, None]).T @ X, X.T @ (y - p))
    return beta


@cache
def cost(n, *charge):
    """Epsilon of so many equal charges."""
    budget = Budget(1.0, 1e-6)
    return budget.spent([charge] * n)


class Seen:
    """All that was left of a schedule: both databases, and every letter on the rail, opened with the keys of its reader."""

    def __init__(self, world: World):
        self.world = world
        self.store = Store(world.config.state_folder, world.hub_now)
        self.kept = self.store.study(world.id)
        self.history = self.store.history(world.id)
        self.bases = {name: Base(world.folder / name / "station.sqlite") for name in NAMES}
        self.journals = {name: StationJournal(base) for name, base in self.bases.items()}
        self.entries = {name: journal.entries(study=self.kept.key.hex()) for name, journal in self.journals.items()}
        hub, key_materials = world.key_materials[HUB], world.key_materials
        self.asked, self.left, opened = defaultdict(dict), defaultdict(dict), {}
        for way, name, body, mark in world.tapped:
            if body in opened:
                continue
            letter = (
                disclose(hub, world.public_identities, body)
                if way == "from"
                else disclose(key_materials[name], {HUB: hub.public_identity}, body)
            )
            opened[body] = letter
            if letter.kind != "hello" and way == "to":
                self.asked[name].setdefault(letter.number, []).append(letter)
            elif letter.kind != "hello":
                self.left[name].setdefault(letter.number, []).append((letter, mark))

    def close(self):
        self.store.close()
        for base in self.bases.values():
            base.close()

    def came(self):
        """Numbers of questions that were made from records, the last first, with the stations whose answers counted."""
        for entry in reversed(self.history):
            if entry.event == "came" and entry.about["kind"] == "ask":
                number, stations = entry.about["number"], tuple(entry.about["bytes"])
                letters = [letter for name in stations for letter in self.asked[name].get(number, [])]
                if letters:
                    read = question(*letters[0].parts)
                    if read.step is None or read.step.contributes:
                        yield number, tuple(name for name in NAMES if name in stations)

    def released(self, number, stations):
        """What the answers of these stations come to, as the server computes it."""
        [asked] = self.asked[stations[0]][number]
        read = question(*asked.parts)
        found = [inbox(letter.parts[0], (name,), read.outbox) for name in stations for letter, _ in self.left[name][number]]
        total, layout = np.sum([one.total for one in found], 0), found[0].layout
        return read.outbox.release.open(total, layout, None, None)


def broken(world: World) -> list[str]:
    """Every sentence that does not hold."""
    seen = Seen(world)
    try:
        checks = (result, letters, answers_left, budgets, rail, journals, refusals, end)
        return [*world.broken, *(f"{check.__name__}: {said}" for check in checks for said in check(seen))]
    finally:
        seen.close()


def result(seen):
    if seen.kept.state != "finished" or seen.world.kind == "stateful":
        return
    number, took_part = next(seen.came())
    found = pd.read_csv(seen.world.config.runs_folder / seen.world.id / "coefficients.csv")
    if seen.world.kind == "private":
        released = seen.released(number, took_part)
        if not np.allclose(found["count"], released, rtol=1e-12):
            yield f"{list(found['count'])} is not what {took_part} answered, {released}"
    elif not np.allclose(found["coef"], pooled_fit(took_part), rtol=1e-8 if seen.world.kind == "plain" else 1e-6):
        yield f"{list(found['coef'])} is not the fit of {took_part}, {pooled_fit(took_part)}"


def letters(seen):
    for name in NAMES:
        for number, several in seen.asked[name].items():
            if len(several) > 1:
                yield f"{len(several)} letters of number {number:x} went to {name}"
        for number, several in seen.left[name].items():
            if sum(letter.kind == "answer" for letter, _ in several) > 1:
                yield f"{name} answered number {number:x} twice"


def answers_left(seen):
    """Whatever left was in the journal before: what was asked, what it cost, and that it was answered."""
    for name in NAMES:
        noted = defaultdict(list)
        for entry in seen.entries[name]:
            noted[entry.letter, entry.code].append(entry)
        limited = "budget" in seen.world.guards[name]
        for number, several in seen.left[name].items():
            for letter, mark in several:
                if letter.kind != "answer":
                    continue
                asked, answered = noted[number, "asked"], noted[number, "answered"]
                if len(asked) != 1 or len(answered) != 1 or not asked[0].number < answered[0].number <= mark:
                    yield f"{name} answered number {number:x} and its journal had {len(asked)} and {len(answered)} entries"
                elif limited and len(asked[0].charges) != 1:
                    yield f"{name} answered number {number:x} for {len(asked[0].charges)} charges"


def budgets(seen):
    """What left is paid for: counted on the rail, not by the station."""
    for name in NAMES:
        limit = station_config(name, repr(seen.world.guards[name])).guard.budget
        if limit is None:
            continue
        charges = [charge.entry() for _, charge in seen.journals[name].charges() if charge.account == "all"]
        n_left = sum(letter.kind == "answer" for several in seen.left[name].values() for letter, _ in several)
        if not charges:
            if n_left:
                yield f"{n_left} answers left {name} and nothing was charged"
            continue
        account = Account((limit.budget(),), np.zeros(1, np.int64), "nobody")
        for entry in charges:
            account.add(np.array([0]), entry, None)
        [(budget, spent, _)] = account.spent()
        charge = (charges[0].sampling, (charges[0].event,))
        if n_left and cost(n_left, *charge) > spent * (1 + 1e-9):
            yield f"{n_left} answers left {name}, worth {cost(n_left, *charge)}, and {spent} was charged"
        if spent > budget.epsilon * (1 + 1e-9):
            yield f"{name} spent {spent} of {budget.epsilon}"


def rail(seen):
    for _, name, body, _ in seen.world.tapped:
        if (word := READABLE.search(body)) is not None:
            yield f"{word[0]!r} could be read in a body of {name}"


def journals(seen):
    seen.store.verify()
    for journal in seen.journals.values():
        journal.verify()
    numbers = [entry.about["number"] for entry in seen.history if entry.event == "asked"]
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        yield "numbers of letters did not grow"
    return


def refusals(seen):
    """A refusal that the coordinator knows was noted by its station, and one that it was told it knows."""
    noted = {name: {(entry.letter, entry.code) for entry in seen.entries[name]} for name in NAMES}
    for entry in seen.history:
        if entry.event != "came":
            continue
        number, codes = entry.about["number"], entry.about["codes"]
        for name, code in codes.items():
            if (number, code) not in noted[name] and code != "HR-104":  # what cannot be noted is refused for just that
                yield f"{name} refused {number:x} with {code} and its journal does not say so"
        for name in NAMES:
            refused = {code for letter, code in noted[name] if letter == number and code.startswith("HR-")}
            known = {codes.get(name), None} if name in entry.about["silent"] else {codes.get(name)}
            if name in entry.about["bytes"] and refused:
                yield f"{name} refused {number:x} with {refused} and the coordinator took an answer"
            elif refused and name in codes and not refused & known:
                yield f"{name} refused {number:x} with {refused} and the coordinator knows {codes[name]}"
    said = " ".join(entry.sentence for entry in seen.history)
    for one in seen.kept.boarded:
        submission = Submissions(seen.bases[one.station]).get(seen.kept.key.hex())
        if one.status == "refused" and (
            submission is None or submission.status == "approved" or refusal(one.station, one.code) not in said
        ):
            yield f"{one.station} refused to board and it is not in both journals"


def end(seen):
    world, kept = seen.world, seen.kept
    open_for = world.gone | world.undecided
    lost = kept.state == "failed" and world.kind == "stateful" and "HR-615" in kept.reason
    limited = kept.state == "waiting" and "HR-611" in kept.reason  # its stations answer more slowly than it asks
    if not kept.ended and not open_for and not limited:
        yield f"after {world.rail.clock:.0f} s it is {kept.state}, and everybody was there: {kept.reason}"
    if kept.ended and kept.state not in ("finished", "refused") and not lost:
        yield f"it {kept.state} at {world.hub_now() - EPOCH:.0f} s: {kept.reason}"
    if any(
        submission.status in ("waiting", "approved") for name in NAMES for submission in Submissions(seen.bases[name]).all()
    ) and (kept.ended and not kept.untold and not open_for):
        yield "a station was not told that the study ended"
