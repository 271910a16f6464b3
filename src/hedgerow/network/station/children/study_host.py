"""The parties of one admitted study: they hold the columns of its submission and no others, and what they keep."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from hedgerow.core.layouts import Layouts
from hedgerow.data import Schema, Table
from hedgerow.data.cases import complete_sizes
from hedgerow.engines import InProcess
from hedgerow.engines.host import Host
from hedgerow.engines.party_states import PartyStates
from hedgerow.errors import HedgerowError
from hedgerow.network.station.admitted import admitted, read_description, read_study
from hedgerow.network.station.aggregations import withstands
from hedgerow.network.station.asking import bears, only, protects, said, trusts_of
from hedgerow.network.station.cohorts import told_cohort
from hedgerow.network.station.config import GuardSection, StationConfig
from hedgerow.network.station.counts import about_of
from hedgerow.network.station.disclosed import AskedNumbers, study_width
from hedgerow.network.station.local_data import LocalData
from hedgerow.network.station.memory import PartyMemory
from hedgerow.network.station.pinned import pinned_of
from hedgerow.network.station.policy import admit_question, admit_rows, as_forbidden
from hedgerow.network.station.signatures import QuestionSignature, settled, signature_of
from hedgerow.network.station.submissions import Submission
from hedgerow.network.station.wear import admit_wear, as_worn
from hedgerow.privacy.guard import GuardedQuestion
from hedgerow.store import Answered
from hedgerow.wire.boarding import known_as
from hedgerow.wire.names import Names
from hedgerow.wire.question import Received, answer

from .chosen import ChosenRecords
from .facts import AskedQuestion, Computed, Uncomputed
from .runner import OwnKeys


class StudyHost:
    """An approved study, made ready to be answered, in one life of its process.

    The guard may have changed since the study was approved, and so may the code that is installed: both are asked again.

    Parameters
    ----------
    config : StationConfig
    held : LocalData
    submission : Submission
    keys : OwnKeys
        With which the parties' sides of protocols sign.
    answered : Answered
        What parties have answered within protocols; it is closed with this.
    states : PartyStates
        What parties keep for later questions; it is closed with this.

    Raises
    ------
    ProgramForbidden (HR-602), ColumnForbidden (HR-603)
    """

    def __init__(
        self,
        config: StationConfig,
        held: LocalData,
        submission: Submission,
        keys: OwnKeys,
        answered: Answered,
        states: PartyStates,
    ) -> None:
        from hedgerow.study.disclosed import named_in
        from hedgerow.study.remote import schema_for

        description, study = read_description(submission.description), read_study(submission.toml)
        schema = admitted(config, held, description, study)
        engine = InProcess().hosting(held.parties(schema.names, schema_for(study, schema).weight), states)
        names = Names(("hedgerow", *config.guard.modules))
        aggregation, told = study.protection.slots()["aggregation"], description.aggregators
        pinned = pinned_of(config, aggregation, told, known_as(submission.study, submission.digest))
        own = replace(keys.credentials(answered), aggregators=pinned)
        self.host = Host(engine, names=names, own=own, seeded=config.guard.randomness == "study")
        self.held, self.submission, self.answered, self.states = held, submission, answered, states
        self.memory, self.layouts = PartyMemory.of(states), Layouts(schema_for(study, schema))
        self._n_parties = sum(description.stations.values())
        self._width, self._most = study_width(study, schema_for(study, schema)), study.protection.disclosure
        self._complete = complete_in(held, schema_for(study, schema), named_in(study, schema_for(study, schema)))
        self._position = {id: i for i, id in enumerate(held.ids)}
        self._chosen = ChosenRecords(engine.held)
        self._at_hand: Received | None = None

    def foresee(self, guard: GuardSection, at: datetime, common: bytes, own: bytes) -> AskedQuestion:
        """Read a question, and refuse what the guard does not allow or the study did not announce; compute nothing of records.

        Raises
        ------
        MessageRefused (HR-242)
            The bytes are no question to the parties here.
        StationError (HR-6xx)
            The guard's reason.
        """
        self._at_hand = None
        asked = self.host.question(common, own)
        which = np.array([self._position[id] for id in asked.ids])
        admit_question(guard, asked, (np.array(self._complete) if self._complete else self.held.sizes)[which], at)
        self.submission.announced.refuse_other(asked, len(self.held))
        guarded: dict[str, GuardedQuestion] = {}
        exact: AskedNumbers | None = None
        if bears(asked):
            self.memory.refuse_lost(asked.outbox, asked.ids)
            asked, guarded, exact = self._foreseen(guard, asked)
        self._at_hand = asked
        question, step = asked.question, asked.step
        return AskedQuestion(
            ids=asked.ids,
            verb=question.verb,
            name=question.name,
            number=question.number if bears(asked) else 0,
            step="" if step is None else step.name,
            bears=bears(asked),
            protected=protects(asked),
            asked=asked.outbox.asked,
            signature=kind_of(asked) if bears(asked) else None,
            guarded=guarded,
            **(about_of(asked) if bears(asked) else {}),
            exact=exact,
        )

    def compute(self, question: AskedQuestion) -> Computed:
        """Answer the question that was foreseen last, for the parties that can pay.

        Raises
        ------
        Uncomputed
        """
        asked, self._at_hand = self._at_hand, None
        assert asked is not None, "a question is foreseen before it is computed"
        left = asked if question.ids == asked.ids else only(asked, question.ids)
        try:
            inbox = self.host.exchange(left)
        except Exception as error:
            forbidden = set(self.held.schema.names) - set(self.submission.columns)
            known = as_forbidden(error, forbidden)
            raise Uncomputed(known, said(error)[0]) from (error if known is error else error.__cause__)
        body = answer(replace(inbox, codes={**inbox.codes, **question.declined}), asked.ids)
        self.answered.flush()
        came: AskedNumbers | None = None
        if question.exact is not None and question.exact.unknown and inbox.layout is not None:
            came = question.exact.came(inbox.layout.size, hiding(asked))
        return Computed(body, inbox.codes, len(inbox.answered), told_cohort(self.host.own), came)

    def close(self) -> None:
        """Release its files."""
        self.answered.close()
        self.states.close()

    def _foreseen(self, guard: GuardSection, question: Received) -> tuple[Received, dict[str, GuardedQuestion], AskedNumbers]:
        """A question as its parties answer it, and as guards look at it: with the layout that this station foresees.

        Raises
        ------
        ProtectionRequired (HR-606)
            The answer may have a row for each record.
        HedgerowError
            What made-up records are answered with, where shapes are unknown for that.
        """
        outbox = question.outbox
        seen = self.layouts.of(outbox.question, outbox.streams)
        found = replace(outbox, layout=seen.layout, rows=seen.rows, unforeseen=seen.unknown, distinct=seen.distinct)
        if seen.error is not None and not guard.rows:
            known = as_forbidden(seen.error, set(self.held.schema.names) - set(self.submission.columns))
            if isinstance(known, HedgerowError):
                raise known from None
        admit_rows(guard, found)
        outbox = as_worn(outbox, self.submission.announced)
        admit_wear(guard.require, outbox)
        question = replace(question, outbox=outbox)
        asked = question if found.release.mechanism is None else question.with_layout(found.layout)
        together = question.aggregation.together if hiding(question) else int
        exact = AskedNumbers.of(guard, found, hiding(question), self._width, self._most, self._n_parties, together)
        exact = exact._replace(
            complete=self._complete, few=self._chosen.few(question.question, asked.ids, bool(hiding(question)))
        )
        exact = exact._replace(steady=not hiding(question) or withstands(question.aggregation))
        return asked, {trust: GuardedQuestion.by(found, trust) for trust in trusts_of(guard)}, exact


def complete_in(held: LocalData, schema: Schema, names: frozenset[str]) -> list[int]:
    """Records of each party that have a weight and lack none of these columns; none where all records count."""
    if schema.weight is None and not any(column.optional for column in schema):
        return []
    ends = np.cumsum(held.sizes)
    parts = [np.arange(end - size, end) for end, size in zip(ends.tolist(), held.sizes.tolist(), strict=True)]
    return complete_sizes(Table({name: held.columns[name] for name in schema.names}, schema), parts)(names)


def hiding(question: Received) -> str:
    """The aggregation that hides rows of a question; "" for none."""
    aggregation = None if question.step is None else question.aggregation
    return aggregation.name if aggregation is not None and aggregation.hides_rows else ""


def kind_of(question: Received) -> QuestionSignature:
    """The announced kind that a question is of."""
    aggregation = "" if question.step is None else settled(question.aggregation)
    return signature_of(question.outbox, aggregation, rows=question.step is None)
