"""A SecAgg federation driven from a dict: letters and answers can be lost, altered or forged, and all of them are kept."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from hedgerow.core.arrays import Layout
from hedgerow.crypto.conversation import Contribution
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server, letters
from hedgerow.errors import HedgerowError

NEVER = staticmethod(lambda *_: False)


def names(n):
    return [f"p{i}" for i in range(n)]


class Play:
    """n parties and their server; `parties` may be replaced by broken twins, `log` holds (step, party, letter, answer)."""

    def __init__(self, n, settings=None, party=SecAggParty, **changes):
        self.settings = settings or SecAgg(**{"rounds_per_epoch": 3, **changes})
        self.ids = names(n)
        self.roster, self.identities = None, dict.fromkeys(self.ids)
        if self.settings.active:
            self.identities = {id: Identity.fresh() for id in self.ids}
            self.roster = Roster({id: identity.public for id, identity in self.identities.items()})
        self.parties = {id: party(id, self.settings, self.roster, self.identities[id]) for id in self.ids}
        self.server = Server(self.settings, self.ids, self.roster)
        self.log, self.refused = [], []

    @property
    def book(self):
        return self.server._book

    def encoding(self, size):
        return RingEncoding(self.settings.bits, len(self.ids), ((size, 1.0),), whole=True)

    def contribution(self, row, context=b"model"):
        row = np.asarray(row)
        return Contribution(Layout((("", row.shape),)), row, self.encoding(len(row)), context)

    def drive(self, conversation, given=None, lost=NEVER, forge=None, alter=None):
        """Carry a conversation to its end; `lost(step, party)` is falsy, "letter" or "answer"."""
        try:
            step = next(conversation)
            while True:
                answers = {}
                for id, letter in step.letters.items():
                    gone = lost(step.name, id)
                    if gone == "letter":
                        continue
                    letter = forge(step.name, id, letter) if forge else letter
                    try:
                        answer = self.parties[id].answer(step.name, letter, given[id] if step.contributes else None)
                    except HedgerowError as error:
                        self.refused.append((step.name, id, error.code))
                        continue
                    if gone:
                        continue
                    answer = alter(step.name, id, answer) if alter else answer
                    self.log.append((step.name, id, letter, answer))
                    answers[id] = answer
                step = conversation.send(answers)
        except StopIteration as end:
            return end.value

    def open(self, ids=None, **hooks):
        return self.drive(self.server.open(ids), **hooks)

    def total(self, rows, context=b"model", ids=None, contexts=None, **hooks):
        given = {id: self.contribution(row, (contexts or {}).get(id, context)) for id, row in rows.items()}
        encoding = self.encoding(len(next(iter(rows.values()))))
        return self.drive(self.server.total(ids or list(rows), encoding, context), given, **hooks)

    def rows(self, size=4, seed=0):
        rng = np.random.default_rng(seed)
        return {id: rng.integers(-1000, 1000, size) for id in self.ids}

    def row_of(self, party, number=1):
        """What a party answered in a round, as the server read it."""
        for step, id, _, answer in self.log:
            if step == "contribution" and id == party and letters.ROW.unpack(answer)[1] == number:
                return np.frombuffer(letters.ROW.unpack(answer)[2], f"<u{self.settings.bits // 8}")
        raise LookupError(party)


def given_out(play, book):
    """Shares that an epoch's parties have given out: {(round, party): {"b": holders, "e": holders}}, read from the log."""
    n, found, cohorts = len(book.ids), {}, {}
    for step, id, letter, _ in play.log:
        if step == "contribution":
            name, number, cohort, *_ = letters.ROUND.unpack(letter)
            cohorts[name, id, number] = letters.read_set(cohort, n).flags if name == book.name else None
        elif step == "unmask":
            name, number, survivors, *_ = letters.UNMASK.unpack(letter)
            if name != book.name:
                continue
            alive = letters.read_set(survivors, n).flags
            for v in book.graph.neighbours[book.places[id]].tolist():
                if cohorts[name, id, number][v]:
                    sides = found.setdefault((number, book.ids[v]), {"b": set(), "e": set()})
                    sides["b" if alive[v] else "e"].add(id)
    return found


def both_given_out(play, book):
    """Parties of which both secrets of one round were given out, by anybody."""
    return {key for key, sides in given_out(play, book).items() if sides["b"] and sides["e"]}


def looks_uniform(numbers):
    """Whether bytes pass a chi-square test with one false alarm in 10^9."""
    counts = np.bincount(np.frombuffer(np.ascontiguousarray(numbers).tobytes(), np.uint8), minlength=256)
    expected = counts.sum() / 256
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > 1e-9
