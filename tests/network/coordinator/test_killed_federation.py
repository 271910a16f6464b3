"""Studies with budgets between real processes, of which one after the other is killed with -9 at seeded points: three studies
and 8 kills, and five studies and 24 kills by `./scripts/test all`.

What was spent is compared with the same studies in peace, in the coordinator's ledgers and in the stations' journals:

    nothing twice       a letter is charged once, and the questions without their repetitions cost what they cost in peace
    nothing too little  nothing was answered without its charge, and what the coordinator got is in journal and ledger
"""

import os
import random
import time
from collections import Counter
from contextlib import closing

import pytest

from hedgerow.cli.pilot import COLUMNS, HUB, free_port, lay_out
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.review import Review
from hedgerow.store import read_chain
from hedgerow.study import load, parse
from running import Running

NAMES = ("alpha", "beta", "gamma")
ALL = "HEDGEROW_SCHEDULES" in os.environ
KILLS, BOARDING, SEED = 24 if ALL else 8, 3, 15
"""So many kills, of which the first few fall before questions are put, and the others while they are."""

ANEW = 2
"""Questions with another broadcast, at most, for each time that the coordinator is killed: it forgets a total that no
checkpoint holds yet, asks for it anew, and gets one with other noise, from which the next broadcast follows."""

LIMITS = {"question_seconds": 60.0, "retry_seconds": 0.2, "retry_most_seconds": 1.0, "least_answers": 3, "studies_at_once": 1}
PROGRAMS = [
    {"name": "moments", "columns": list(COLUMNS[:3])},
    {"name": "logistic_regression", "formula": "malignant ~ mean_radius + mean_texture"},
    {"name": "scaffold", "model": "linear", "rounds": 12, "batch_size": 0},  # parties keep control variates
    {"name": "feddyn", "model": "linear", "rounds": 12, "batch_size": 0},  # parties keep a memory
    {"name": "fedavg", "model": "linear", "rounds": 8, "batch_size": 0},
][: 5 if ALL else 3]
NOISE = {"clip": {"radius": 1.0}, "mechanism": {"law": "gaussian", "noise_multiplier": 8.0, "at": "party"}}
LIMIT = {"delta": 1e-6, "unit": "party"}


class Processes(Running):
    """A coordinator and its stations, each a process, and studies that were submitted."""

    def __init__(self, folder):
        guard = {
            "programs": [{"name": one["name"]} for one in PROGRAMS],
            "require": {"noise": "party"},
            "budget": {"epsilon": 200.0, **LIMIT},
        }
        lay_out(folder, NAMES, port=free_port(), limits=LIMITS, guard=guard)
        super().__init__(folder)
        told = load(folder / "study.toml").model_dump(mode="json", exclude_none=True)
        shared = {name: told[name] for name in ("data", "partition")} | {
            "protection": NOISE,
            "budget": {"epsilon": 60.0, **LIMIT},
        }
        studies = [parse(shared | {"name": one["name"], "program": one}) for one in PROGRAMS]
        self.studies = {study.program.name: submit(self.store, study) for study in studies}

    def over(self):
        return all(kept.ended and not kept.untold for kept in self.store.studies())


def spent_in(folder, kills):
    """Let processes run the studies, with so many of them killed; returns what was found in journals and ledgers."""
    processes, rng, killed = Processes(folder), random.Random(SEED), Counter()
    try:
        for name in (HUB, *NAMES):
            processes.start(name)
        while killed.total() < kills:
            victim, delay = rng.choice((HUB, *NAMES)), rng.choice((0.0, rng.uniform(0.0, 0.05), rng.uniform(0.0, 0.5)))
            happened = processes.events if killed.total() < BOARDING else processes.questions
            further = happened() + 1
            processes.until(lambda go=happened, at=further: go() >= at or processes.over(), "the next letter")
            if processes.over():
                break
            time.sleep(delay)
            processes.kill(victim)
            processes.start(victim)
            killed[victim] += 1
        assert killed.total() == kills, "the studies ended before"
        processes.until(processes.over, "the studies' end")
        return Found(processes, killed)
    finally:
        processes.stop()


class Found:
    """What is on the disks when all studies have ended."""

    def __init__(self, processes, killed):
        self.killed = killed
        store, folder = processes.store, processes.folder
        self.studies, store_key = processes.studies, {}
        self.states = {name: store.study(id).state for name, id in self.studies.items()}
        self.reasons = {name: store.study(id).reason for name, id in self.studies.items()}
        self.letters, self.came, self.ledgers = {}, {}, {}
        for name, id in self.studies.items():
            store_key[name] = store.study(id).key.hex()
            history = [one for one in store.history(id) if one.about.get("kind") == "ask"]
            self.letters[name] = [one.about["number"] for one in history if one.event == "asked"]
            self.came[name] = {
                (station, one.about["number"]) for one in history if one.event == "came" for station in one.about["bytes"]
            }
            self.ledgers[name] = read_chain(processes.config.runs_folder / id / "ledger.jsonl").entries
        self.journals, self.spent = {}, {}
        for station in NAMES:
            with closing(Review.at(folder / station)) as review:
                review.journal.verify()
                entries = review.journal.entries()
                self.journals[station] = {name: [one for one in entries if one.study == key] for name, key in store_key.items()}
                [self.spent[station]] = [one.epsilon for one in review.spent() if one.whose == "everything"]
            assert not list((folder / station / "state" / "states").glob("*")), "states outlived their studies"


def costs(entries):
    """What each question of a study cost at a station, whenever it was asked."""
    found = {}
    for one in entries:
        if one.code == "asked" and one.question:
            [charge] = one.charges
            debit = charge.entry()
            found.setdefault(one.question, []).append((one.letter, debit.query, debit.unit, debit.event))
    return found


@pytest.mark.slow
def test_kills_over_studies_charge_nothing_twice_and_nothing_too_little(tmp_path):
    quiet, stormy = spent_in(tmp_path / "quiet", 0), spent_in(tmp_path / "stormy", KILLS)
    repeated = 0
    for found in (quiet, stormy):
        assert found.states == dict.fromkeys(found.studies, "finished"), found.reasons
    for name in quiet.studies:
        ledger = {found: Counter(entry.round for entry in found.ledgers[name]) for found in (quiet, stormy)}
        assert set(ledger[quiet].values()) == set(ledger[stormy].values()) == {1}  # what is put again has a number of its own
        letters = stormy.letters[name]
        assert len(letters) == len(set(letters)) <= sum(ledger[stormy].values()) <= len(letters) + KILLS
        for station in NAMES:
            journal = stormy.journals[station][name]
            inside, outside = costs(quiet.journals[station][name]), costs(journal)
            assert inside.keys() == ledger[quiet].keys()
            assert outside.keys() <= ledger[stormy].keys()
            asked = [one.letter for one in journal if one.code == "asked"]
            answered = [one.letter for one in journal if one.code == "answered"]
            assert len(asked) == len(set(asked))  # a letter that came again was not charged again
            assert len(answered) == len(set(answered))
            assert set(answered) <= set(asked) <= set(letters)  # no answer without a charge, no charge without a question
            assert {letter for who, letter in stormy.came[name] if who == station} <= set(answered)
            [cost] = {one[1:] for several in inside.values() for one in several}
            assert {one[1:] for several in outside.values() for one in several} == {cost}
            assert {len(several) for several in (*inside.values(), *outside.values())} == {1}
            assert len(inside) <= len(outside)
            repeated += len(outside) - len(inside)
            asked_for = {one.broadcast for one in journal if one.code == "asked" and one.question}
            assert len(inside) <= len(asked_for) <= len(inside) + ANEW * stormy.killed[HUB]
            assert "HR-615" not in {one.code for one in journal}
            assert "HR-618" not in {one.code for one in journal}
    for station in NAMES:
        assert stormy.spent[station] >= quiet.spent[station] * (1 - 1e-9)
    assert repeated > 0, "no kill fell into a question"
    print(f"{KILLS} kills, {repeated} charges at stations for questions that were put again")
