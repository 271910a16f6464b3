"""A party's side of additive shares."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.arrays import Array
from hedgerow.errors import KeyInvalid, MessageRefused
from hedgerow.store import Answered

from ..conversation import Contribution
from ..keys import AgreementKey, Identity, Roster, seal
from ..streams import ZERO_NONCE, add_streams
from .derived import announced, bond, correction_key, pinned, purpose, share_key
from .letters import ASK, KEY, OPEN, ROW
from .round_task import RoundTask
from .settings import AdditiveShares


class AdditiveParty:
    """A party's side. It makes one key for an epoch, and answers each of its rounds at most once, in order.

    Keys are kept in memory alone: a party that was restarted waits for the next epoch.

    Parameters
    ----------
    id : str
    settings : AdditiveShares
    aggregators : sequence of bytes
        Their public keys, pinned: whoever could replace all of them would see the rows.
    roster, identity : Roster, Identity, optional
        With them the party signs its key, for aggregators that hold the same roster.
    journal : Answered, optional
        Keeps the epochs that were joined across restarts.
    study : bytes
        Digest of the study as this party approved it, where parties have owners: keys are for this study alone, and its
        exact totals are over one set of parties, which aggregators see to.
    """

    def __init__(
        self,
        id: str,
        settings: AdditiveShares,
        aggregators: Sequence[bytes],
        *,
        roster: Roster | None = None,
        identity: Identity | None = None,
        journal: Answered | None = None,
        study: bytes = b"",
    ) -> None:
        if (roster is None) != (identity is None):
            raise KeyInvalid("a roster and an identity go together.", remedy="Give both or neither.", asked=False)
        self.id, self.settings, self.aggregators = id, settings, tuple(aggregators)
        self.roster, self.identity, self.journal = roster, identity, journal
        self._pinned, self._owned = pinned(self.aggregators, settings.aggregators, study), bool(study)
        self._left: set[bytes] = set()
        self._epoch, self._last, self._joined_by = b"", 0, b""
        self._bonds: tuple[bytes, ...] = ()
        self._public = b""

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer "enrol" or "contribution", or refuse it; a refusal changes nothing."""
        if step == "enrol":
            return self._enrol(letter)
        if step == "contribution" and contribution is not None:
            return self._contribution(letter, contribution)
        raise MessageRefused(f"step {step!r} cannot be answered.", remedy="Steps are 'enrol' and 'contribution'.")

    def _enrol(self, letter: bytes) -> bytes:
        epoch, aggregators = OPEN.unpack(letter)
        if aggregators != self._pinned:
            raise KeyInvalid("the server names other aggregators than are pinned here.", remedy="Pin the same everywhere.")
        if epoch == self._epoch:
            return self._joined_by  # the first answer may have been lost
        if epoch in self._left:
            raise MessageRefused("this party has left that epoch.", remedy="Begin a new epoch.")
        key = AgreementKey.fresh()
        bonds = tuple(bond(key.agree(public), epoch, self._pinned, i, key.public) for i, public in enumerate(self.aggregators))
        signature = b""
        if self.identity is not None and self.roster is not None:
            signature = self.identity.sign(announced(epoch, self._pinned, self.id, key.public, self.roster))
        if self.journal is not None:
            self.journal.write(f"additive {epoch.hex()}", key.public)
        self._left.add(self._epoch)
        self._epoch, self._last, self._bonds, self._public = epoch, 0, bonds, key.public
        self._joined_by = KEY.pack(epoch=epoch, public=key.public, signature=signature)
        return self._joined_by

    def _contribution(self, letter: bytes, contribution: Contribution) -> bytes:
        epoch, round, agreed = ASK.unpack(letter)
        if not self._epoch or epoch != self._epoch:
            raise MessageRefused("this party is not in the epoch that is asked for.", remedy="Begin a new epoch.")
        if not self._last < round <= self.settings.rounds:
            raise MessageRefused(
                f"round {round} of the epoch is over here, or beyond its end.", remedy="Every round has a new number."
            )
        encoding = contribution.encoding
        if agreed != self._task(contribution).terms:
            raise MessageRefused(
                "the server announced other terms than this party received.",
                remedy="All parties of a round need the same model, question, settings and encoding.",
            )
        steady = int(contribution.steady and self._owned)
        made_for = purpose(round, agreed, encoding.bits, encoding.size, contribution.least, steady)
        sent = self._sent(round, made_for, steady, contribution)
        self._last = round
        return sent

    def _task(self, contribution: Contribution) -> RoundTask:
        """What the round is for, by what the party itself received."""
        return RoundTask(contribution.encoding.digest, contribution.context, contribution.noise)

    def _sent(self, round: int, made_for: bytes, steady: int, contribution: Contribution) -> bytes:
        """The letter with the row."""
        row = contribution.encoding.encode(contribution.row)
        self._split(row, [share_key(secret, made_for) for secret in self._bonds[:-1]])
        box = seal(correction_key(self._bonds[-1], made_for), row.tobytes(), made_for)
        return ROW.pack(epoch=self._epoch, round=round, steady=steady, box=box)

    def _split(self, row: Array, shares: list[bytes]) -> None:
        add_streams(row, shares, [-1] * len(shares), ZERO_NONCE)
