"""`Host`: answers packed questions for the parties of one process, whoever brings them there.

    worker process    (`Processes`)      actor of a cluster  (`Ray`)      station  (`hedgerow.network.station`)

A host has an in-process engine, and a side of every protocol that questions go through. What it is asked comes as bytes and
what leaves it are bytes; it never opens a socket.
"""

from __future__ import annotations

from dataclasses import replace

from hedgerow.core.engine import Inbox
from hedgerow.core.randomness import Streams
from hedgerow.crypto.aggregation import Side
from hedgerow.crypto.schemes import Credentials
from hedgerow.errors import HedgerowError, MessageRefused, PartyDeclined
from hedgerow.wire.question import Received, answer, question
from hedgerow.wire.values import HEDGEROW, Names

from .inprocess import InProcess
from .party_states import keeping


class Host:
    """The parties of one process.

    Parameters
    ----------
    engine : InProcess
        It hosts the parties.
    names : Names
        Whose functions and classes may be named in questions.
    own : Credentials, optional
        What the parties' sides of protocols need: identities, a roster, journals.
    seeded : bool
        Whether a seed that the server names is used, as in a simulation. Otherwise all randomness is this host's own: noise
        that a server could foretell would be none.
    nameless : bool
        Whether a question may name nobody and is then to all parties here, as in a simulation.
    """

    def __init__(
        self,
        engine: InProcess,
        *,
        names: Names = HEDGEROW,
        own: Credentials | None = None,
        seeded: bool = False,
        nameless: bool = False,
    ) -> None:
        self.engine, self.names, self.seeded, self.nameless = engine, names, seeded, nameless
        self.own = own or Credentials()
        self._streams: dict[int | None, Streams] = {}

    def streams(self, seed: int | None) -> Streams:
        """The streams of a seed, the same from question to question; without a seed, of this process."""
        seed = seed if self.seeded else None
        if seed not in self._streams:
            self._streams = {seed: Streams(seed)}
        return self._streams[seed]

    def question(self, common: bytes, own: bytes) -> Received:
        """Read a question.

        Raises
        ------
        MessageRefused (HR-242)
            The bytes are no question, or one to parties that are not here.
        """
        held = self.engine.held
        here = held.ids if self.nameless else ()
        asked = question(common, own, streams=self.streams, names=self.names, here=here)
        if unknown := [id for id in asked.ids if id not in held.position] if asked.ids is not here else []:
            raise MessageRefused(f"a question to {unknown[0]!r}, who is not here.", remedy="Parties are those of the hello.")
        return asked

    def exchange(self, asked: Received) -> Inbox:
        """Put a question to the parties here."""
        outbox = asked.outbox
        if outbox.step is not None:
            outbox = replace(outbox, protocol=Side(asked.aggregation, self.own))
        with keeping(self.engine.held.states):
            return self.engine.exchange(outbox)

    def answer(self, common: bytes, own: bytes) -> bytes:
        """Answer a question: bytes in, bytes out."""
        asked = self.question(common, own)
        return answer(self.exchange(asked), asked.ids)

    def fresh(self, engine: InProcess | None = None) -> Host:
        """The same parties, before they were asked anything; on another engine where one is given."""
        chosen = self.engine if engine is None else engine
        again = replace(chosen, held=self.engine.held.fresh())
        return Host(again, names=self.names, own=self.own, seeded=self.seeded, nameless=self.nameless)


def code_of(error: Exception) -> str:
    """What of an error may cross the boundary: its code, or that of the reason why a party declined."""
    if isinstance(error, PartyDeclined):
        reasons = set(error.codes.values())
        return reasons.pop() if len(reasons) == 1 else PartyDeclined.code
    return error.code if isinstance(error, HedgerowError) else PartyDeclined.code
