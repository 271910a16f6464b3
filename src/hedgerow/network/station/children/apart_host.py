"""The party of one admitted study over columns that lie apart: it holds columns of its role, ids, its state and its desk.

Ids are read by an alignment and by nothing else: other questions find a party without them. What a question may do is decided
by the protocol that comes with it and by the guard as it is now.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import numpy as np

from hedgerow.core.apart import PartiesApart
from hedgerow.core.arrays import Array
from hedgerow.core.engine import Outbox
from hedgerow.crypto.context import description_digest
from hedgerow.engines import InProcess
from hedgerow.engines.desk_files import DeskFile
from hedgerow.engines.host import Host
from hedgerow.engines.party_states import PartyStates
from hedgerow.network.station.admitted import admitted, read_description, read_study
from hedgerow.network.station.alignments import AskedAlignment
from hedgerow.network.station.apart import admit_asked, admit_total
from hedgerow.network.station.asking import bears, protects, said, trusts_of
from hedgerow.network.station.config import GuardSection, StationConfig
from hedgerow.network.station.counts import about_of
from hedgerow.network.station.disclosed import AskedNumbers
from hedgerow.network.station.few_common import watching
from hedgerow.network.station.local_data import LocalData
from hedgerow.network.station.policy import admit_question
from hedgerow.network.station.signatures_apart import as_announced, kind_apart
from hedgerow.network.station.submissions import Submission
from hedgerow.privacy.guard import GuardedQuestion
from hedgerow.store import Answered
from hedgerow.vertical.align import MADE, Aligning
from hedgerow.wire.names import Names
from hedgerow.wire.question import Received, answer

from .facts import AskedQuestion, Computed, Uncomputed
from .runner import OwnKeys


class ApartHost:
    """An approved study's party at this station, in one life of its process; a `StudyChild`.

    Parameters
    ----------
    config : StationConfig
    held : LocalData
    submission : Submission
    keys : OwnKeys
        By which letters to other stations are sealed: their keys are signed, and the roster says by whom.
    answered : Answered
    states : PartyStates
    desk : DeskFile
        What the party keeps of protocols with others; closed with this, as the others are.

    Raises
    ------
    StationError (HR-6xx)
        The guard does not allow the study now.
    """

    def __init__(
        self,
        config: StationConfig,
        held: LocalData,
        submission: Submission,
        keys: OwnKeys,
        answered: Answered,
        states: PartyStates,
        desk: DeskFile,
    ) -> None:
        description, study = read_description(submission.description), read_study(submission.toml)
        schema = admitted(config, held, description, study)
        assert config.data.ids is not None, "a study without ids was admitted"
        me, ids = config.name, held.columns[config.data.ids]
        self.held, self.submission, self.answered, self.states, self.desk = held, submission, answered, states, desk
        engine = InProcess(threads=1).hosting(PartiesApart({me: {name: held.columns[name] for name in schema.names}}), states)
        engine.held.desks = desk.desks()
        matching = PartiesApart({me: {config.data.ids: ids}})
        engine.held._same(matching)
        names = Names(("hedgerow", *config.guard.modules))
        how: dict[str, Any] = {"names": names, "own": keys.credentials(answered), "seeded": config.guard.randomness == "study"}
        self.host, self._matching = Host(engine, **how), Host(replace(engine, held=matching), **how)
        self._me, self._others = me, tuple(name for name in description.stations if name != me)
        self._ids, self._width, self._config = ids, len(schema.names), config
        self._most, self._aligned_on = study.protection.disclosure, config.data.ids
        self._at_hand: Received | None = None
        self._guard = config.guard
        engine.held.watch = watching(lambda: self._guard.vertical.least_common)

    def foresee(self, guard: GuardSection, at: datetime, common: bytes, own: bytes) -> AskedQuestion:
        """Read a question, and refuse what the guard does not allow or the study did not announce; see `StudyHost.foresee`."""
        self._at_hand = None
        asked = self.host.question(common, own)
        admit_question(guard, asked, self.held.sizes, at)
        admit_asked(guard, asked, on=self._aligned_on, here=len(self._ids), others=self._others)
        self.submission.announced.refuse_other(as_announced(asked), 1)
        self._guard = guard
        found = replace(asked, outbox=_foreseen(asked))
        self._at_hand = asked
        question, step, bearing = asked.question, asked.step, bears(asked)
        return AskedQuestion(
            ids=asked.ids,
            verb=question.verb,
            name=question.name,
            number=question.number if bearing else 0,
            step="" if step is None else step.name,
            bears=bearing,
            protected=protects(asked),
            asked=asked.outbox.asked,
            signature=kind_apart(asked.outbox, asked.aggregation) if bearing else None,
            guarded={trust: GuardedQuestion.by(found.outbox, trust) for trust in trusts_of(guard)} if bearing else {},
            **(about_of(asked) if bearing else {}),
            exact=self._numbers(guard, found) if bearing else None,
            alignment=self._alignment(asked),
        )

    def compute(self, question: AskedQuestion) -> Computed:
        """Answer the question that was foreseen last; see `StudyHost.compute`."""
        asked, self._at_hand = self._at_hand, None
        assert asked is not None, "a question is foreseen before it is computed"
        host = self._matching if isinstance(asked.aggregation, Aligning) else self.host
        came: AskedNumbers | None = None
        try:
            inbox = host.exchange(asked)
            if asked.step is None and inbox.layout is not None:
                admit_total(asked.question.name, inbox.layout.size, self._n_people())
                came = None if question.exact is None else question.exact.came(inbox.layout.size, "")
        except Exception as error:
            raise Uncomputed(error, said(error)[0]) from error.__cause__
        if asked.aggregation is not None and question.bears:  # a state folder that lacks this has forgotten (HR-618)
            self.answered.of(self._me).write(
                f"/between/{question.place}/{question.about}", description_digest(asked.aggregation)
            )
        body = answer(replace(inbox, codes={**inbox.codes, **question.declined}), asked.ids)
        self.answered.flush()
        return Computed(body, inbox.codes, len(inbox.answered), came=came)

    def close(self) -> None:
        """Release its files."""
        self.answered.close()
        self.states.close()
        self.desk.close()

    def _alignment(self, asked: Received) -> AskedAlignment | None:
        """The alignment that is begun with this step, or will be with the next one."""
        step = asked.step
        if not isinstance(asked.aggregation, Aligning) or step is None or not (step.contributes or step.name == "keys"):
            return None
        return AskedAlignment(list_digest(self._ids), self._others, step.contributes)

    def _n_people(self) -> int:
        """How many people are common, or are here where nothing was aligned."""
        made = self.desk.get(self._me, MADE)
        return len(self._ids) if made is None else int(made["n"])

    def _numbers(self, guard: GuardSection, asked: Received) -> AskedNumbers | None:
        """The exact numbers of a total over common people; rows that leave are allowed or refused, and not counted."""
        outbox = asked.outbox
        if outbox.rows or outbox.question.verb == "each" or (outbox.step is not None and outbox.layout is None):
            return None
        return AskedNumbers.of(guard, outbox, "", self._width, self._most, 1)


def _foreseen(asked: Received) -> Outbox:
    """A question as guards look at it: with what its protocol knows of the answer."""
    found: Outbox = asked.outbox if asked.aggregation is None else asked.aggregation.foreseen(asked.outbox)
    return found


def list_digest(ids: Array) -> str:
    """Stands for a list of people, in whatever order."""
    found = sha256()
    for word in sorted(np.asarray(ids).astype(str).tolist()):
        found.update(word.encode() + b"\0")
    return found.hexdigest()
