"""Pairwise masks: rows hide behind masks that cancel within a group. The simple secure aggregation of the thesis, repaired.

Every two parties of a group agree on a secret that the server, which carries their keys, does not know; one adds a mask
made from it, the other takes the same mask off. The sum over the group is the sum of its rows.

    for each round:
        keys          every party makes a fresh X25519 key and sends the public half
                      the server divides those who answered into groups, by a public permutation
        contribution  every party is sent the names and keys of its group, and answers
                      y_u = encode(x_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv)   mod 2^bits
                      s_uv = HKDF(X25519(key_u, key_v), "pairwise", names, digest of the group's letter)
        total         sum of the y_u of each group that is complete

The group's letter holds round, terms (digest of encoding, model and question), names and keys, so that masks cancel only
among parties that saw the same of all of them. Each row ends in 64 bits of zeros: where masks did not cancel, the total
of these is not zero, and the group is left out instead of being counted wrongly.

There is no recovery: when one party of a group is lost after the keys, the total of that group stays hidden and its
parties are not counted. A party that is lost before costs nothing.

The server sees  : masked rows, each uniform by itself, and the total of each group (of everybody, where there are no groups).
A party sees     : names, keys and the size of its group.
Colluders see    : with the server, all others of a group know the row of the last; all but two know the sum of the two.
                   With groups of g that is privacy against any g - 1 of them, the server being one.
Not stood        : wrong rows move a group's total as far as the ring allows, unseen; a spoilt mask loses the group.
Assumes          : a server that passes keys on unchanged, unless a roster is pinned: then keys and rows are signed.
Source           : van Aarle 2021, sections 2.6.2 and 6.2.7. Differs: keys are fresh every round (one lasting key made all
                   masks repeat, so that two rounds showed the change of a row), integers modulo 2^bits in place of floats,
                   AES-256-CTR in place of a Mersenne twister, terms bound into the masks, a check that masks cancelled.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused, RoundRefused, SettingsInvalid
from hedgerow.store import Answered

from .cohort import addressed, cut, fits, lawful_least, whole
from .conversation import Contribution, Conversation, Step, Total
from .fixedpoint import WORDS, RingEncoding
from .keys import AgreementKey, Identity, Roster, derive
from .messages import FieldKind, MessageForm, Octets, Several, Whole, Words, digest, exactly
from .standing import PartySet, StandingSet, names_digest
from .streams import ZERO_NONCE, add_streams

CHECK = 8
"""Bytes of zeros at the end of a row, by which the server sees whether masks cancelled."""

LARGEST_GROUP = 1 << 16

_HEAD: dict[str, FieldKind] = {"session": exactly(32), "round": Whole(1, 2**32 - 1)}
_SIGNATURE = Octets(0, 64)
KEYS = MessageForm("pairwise keys", **_HEAD)
KEY = MessageForm("pairwise key", **_HEAD, public=exactly(32), signature=_SIGNATURE)
GROUP = MessageForm(
    "pairwise group",
    **_HEAD,
    terms=exactly(32),
    ids=Several(Words(), LARGEST_GROUP),
    keys=Octets(0, 32 * LARGEST_GROUP),
    signatures=Octets(0, 64 * LARGEST_GROUP),
)
ROW = MessageForm("pairwise row", **_HEAD, row=Octets(CHECK, 1 << 32), signature=_SIGNATURE)


@dataclass(frozen=True)
class PairwiseMasks:
    """Settings of pairwise masks.

    Parameters
    ----------
    group : int, optional
        Parties are divided into groups of at least so many, so that a party's cost does not grow with the cohort; the
        server then sees the total of each group. None: one group, which no party may leave after the keys.
    least : int
        The smallest group in which a party takes part; at least 3.
    """

    group: int | None = None
    least: int = 3

    def __post_init__(self) -> None:
        whole(group=self.group, least=self.least)
        lawful_least(self.least)
        if self.group is not None and self.group < self.least:
            raise SettingsInvalid(
                f"group={self.group}, below least={self.least}.", remedy="No party would answer; take larger groups."
            )


def divided(ids: Iterable[str], group: int | None, salt: bytes) -> list[tuple[str, ...]]:
    """Divide parties into groups of at least `group` by the order of their salted digests; names are sorted in each.

    Anybody who knows the names can repeat it. Fewer than `group` parties make one group.
    """
    order = sorted(ids, key=lambda id: digest("pairwise groups", salt, id.encode()))
    n_groups = 1 if group is None else max(1, len(order) // group)
    cuts = [len(order) * i // n_groups for i in range(n_groups + 1)]
    return [tuple(sorted(order[a:b])) for a, b in itertools.pairwise(cuts)]


def terms(encoding: RingEncoding, context: bytes) -> bytes:
    """What the parties of a total must agree on besides one another, 32 bytes."""
    return digest("pairwise terms", encoding.digest, context)


@dataclass(frozen=True)
class MaskGroup:
    """The letter of a group: who is in it for which round, and with which keys; `seen` is its digest."""

    session: bytes
    round: int
    terms: bytes
    ids: tuple[str, ...]
    keys: tuple[bytes, ...]
    signatures: tuple[bytes, ...]
    seen: bytes

    @classmethod
    def read(cls, letter: bytes) -> MaskGroup:
        """Read it, or refuse it: names are in order, and no name or key comes twice."""
        session, round, agreed, ids, joined, signed = GROUP.unpack(letter)
        keys = cut(joined, len(ids), 32)
        signatures = cut(signed, len(ids), 64) if signed else []
        if ids != sorted(set(ids)) or len(set(keys)) != len(keys):
            raise MessageRefused("a group names a party or a key twice, or is out of order.", remedy="Start a new round.")
        return cls(session, round, agreed, tuple(ids), tuple(keys), tuple(signatures), digest("pairwise group", letter))


_group = lru_cache(maxsize=128)(MaskGroup.read)  # parties of one process are sent the same bytes


def _announced(session: bytes, round: int, id: str, public: bytes, roster: Roster) -> bytes:
    return digest("pairwise key", session, round.to_bytes(4, "little"), id.encode(), public, roster.digest)


def _sent(session: bytes, round: int, id: str, row: bytes) -> bytes:
    return digest("pairwise row", session, round.to_bytes(4, "little"), id.encode(), row)


class PairwiseParty:
    """A party's side. It answers each round of a session once, under a key of its own that it then forgets.

    Parameters
    ----------
    id : str
    settings : PairwiseMasks
        The party's own: its `least` counts, whatever the server wants.
    roster, identity : Roster, Identity, optional
        Pinned keys of all parties, and this party's: keys and rows are signed, and others' signatures asked for.
    known : container of str, optional
        Who may be in a group with this party; the roster, or anybody where there is none.
    journal : Answered, optional
        Keeps answered rounds across restarts.
    standing : StandingSet, optional
        The group in which this party's exact totals are, where they are held to be over the same parties.
    """

    def __init__(
        self,
        id: str,
        settings: PairwiseMasks,
        *,
        roster: Roster | None = None,
        identity: Identity | None = None,
        known: Container[str] | None = None,
        journal: Answered | None = None,
        standing: StandingSet | None = None,
    ) -> None:
        if (roster is None) != (identity is None):
            raise KeyInvalid("a roster and an identity go together.", remedy="Give both or neither.", asked=False)
        self.id, self.settings, self.journal, self.standing = id, settings, journal, standing
        self.roster, self.identity = roster, identity
        self.known = roster if known is None else known
        self._last: dict[bytes, int] = {}
        self._open: tuple[bytes, int, AgreementKey] | None = None

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer "keys" or "contribution", or refuse it; a refusal changes nothing."""
        if step == "keys":
            return self._keys(letter)
        if step == "contribution" and contribution is not None:
            return self._contribution(letter, contribution)
        raise MessageRefused(f"step {step!r} cannot be answered.", remedy="Steps are 'keys' and 'contribution'.")

    def _keys(self, letter: bytes) -> bytes:
        session, round = KEYS.unpack(letter)
        if round <= self._last.get(session, 0):
            raise MessageRefused(f"round {round} of this session was begun before.", remedy="Every round has a new number.")
        key = self._fresh()
        signature = b""
        if self.identity is not None and self.roster is not None:
            signature = self.identity.sign(_announced(session, round, self.id, key.public, self.roster))
        if self.journal is not None:
            self._write(session, round, "keys", key.public)
        self._last[session], self._open = round, (session, round, key)
        return KEY.pack(session=session, round=round, public=key.public, signature=signature)

    def _contribution(self, letter: bytes, contribution: Contribution) -> bytes:
        group = _group(letter)
        if self._open is None or self._open[:2] != (group.session, group.round):
            raise MessageRefused(f"round {group.round} is not open here, or answered.", remedy="Start a new round.")
        key = self._open[2]
        self._check(group, key, max(self.settings.least, contribution.least))
        encoding: RingEncoding = contribution.encoding
        if group.terms != terms(encoding, contribution.context):
            raise MessageRefused(
                "the server announced other terms than this party received.",
                remedy="All parties of a round need the same model, question, settings and encoding.",
            )
        row = np.concatenate([encoding.encode(contribution.row), np.zeros(CHECK * 8 // encoding.bits, WORDS[encoding.bits])])
        mine = group.ids.index(self.id)
        others = [j for j in range(len(group.ids)) if j != mine]
        seeds = [self._seed(key.agree(group.keys[j]), min(mine, j), max(mine, j), group) for j in others]
        self._mask(row, seeds, [1 if mine < j else -1 for j in others])
        masked, signature = row.tobytes(), b""
        if self.identity is not None:
            signature = self.identity.sign(_sent(group.session, group.round, self.id, masked))
        if self.standing is not None:
            everybody = PartySet.of(names_digest(group.ids), np.ones(len(group.ids), bool))
            if contribution.steady:
                self.standing.keep(everybody, max(self.settings.least, contribution.least))
            else:
                self.standing.hear(everybody)
        if self.journal is not None:
            self._write(group.session, group.round, "contribution", group.seen)
        self._open = None
        return ROW.pack(session=group.session, round=group.round, row=masked, signature=signature)

    def _write(self, session: bytes, round: int, step: str, what: bytes) -> None:
        if self.journal is not None:
            self.journal.write(f"pairwise {session.hex()} {round} {step}", what)

    def _check(self, group: MaskGroup, key: AgreementKey, least: int) -> None:
        if len(group.ids) < least:
            raise MessageRefused(
                f"a group of {len(group.ids)}; this party takes part in groups of {least} or more.",
                remedy="Ask more parties, or make larger groups.",
            )
        if self.id not in group.ids or group.keys[group.ids.index(self.id)] != key.public:
            raise MessageRefused(
                "this party is not in the group it was sent, or with another key.", remedy="Start a new round."
            )
        if self.known is not None:
            strangers = [id for id in group.ids if id not in self.known]
            if strangers:
                raise KeyInvalid(f"{strangers[0]!r} is unknown here.", remedy="Pin the same roster everywhere.")
        if self.roster is not None:
            if len(group.signatures) != len(group.ids):
                raise KeyInvalid("keys came without signatures.", remedy="Every party of a roster signs its keys.")
            for id, public, signature in zip(group.ids, group.keys, group.signatures, strict=True):
                self.roster.verify(id, signature, _announced(group.session, group.round, id, public, self.roster))

    def _fresh(self) -> AgreementKey:
        return AgreementKey.fresh()

    def _seed(self, secret: bytes, first: int, second: int, group: MaskGroup) -> bytes:
        """The key of a pair's stream; bound to everything that the two must have seen alike."""
        return derive(secret, "pairwise", first.to_bytes(4, "little") + second.to_bytes(4, "little") + group.seen)

    def _mask(self, row: Array, seeds: list[bytes], signs: list[int]) -> None:
        add_streams(row, seeds, signs, ZERO_NONCE)


class PairwiseServer:
    """The server's side: one session of many rounds.

    Parameters
    ----------
    settings : PairwiseMasks
    members : collection of str
        Who can be asked.
    roster : Roster, optional
        Pinned keys: what is not signed by its party counts as lost.
    """

    def __init__(self, settings: PairwiseMasks, members: Collection[str], roster: Roster | None = None) -> None:
        self.settings, self.members, self.roster = settings, frozenset(members), roster
        self._session, self._round = secrets.token_bytes(32), 0

    def total(
        self, ids: Iterable[str], encoding: RingEncoding, context: bytes = b"", least: int = 0, steady: bool = False
    ) -> Conversation[Total]:
        """Ask parties for one total.

        Parameters
        ----------
        ids : iterable of str
        encoding : RingEncoding
            The same at every party.
        context : bytes
            Digest of model and question; the same at every party.
        least : int
            What the parties want of each group of this total, where it is more than they want of every group.
        steady : bool
            The parties hold groups to be the same in all such totals: they follow from the names of those who are asked, and
            one of which a key is missing gives none.

        Raises
        ------
        CohortTooSmall (HR-240), RangeExceeded (HR-243)
            Fewer than `least` parties, or more than fixed point has room for; nobody was asked.
        RoundRefused (HR-241)
            No group is complete, or groups would be too small; every row stays hidden.
        """
        least = max(self.settings.least, least)
        asked = addressed(ids, self.members, least)
        fits(encoding, len(asked))
        self._round += 1
        head = {"session": self._session, "round": self._round}
        answers = yield Step("keys", dict.fromkeys(asked, KEYS.pack(**head)))
        keys = self._keys(asked, answers, head)
        if steady:
            groups = [ids for ids in divided(asked, self.settings.group, b"steady") if keys.keys() >= set(ids)]
        else:
            groups = divided(keys, self.settings.group, self._session + self._round.to_bytes(4, "little"))
        smallest = min((len(group) for group in groups), default=0)
        if smallest < least:
            raise RoundRefused(
                f"{len(keys)} of {len(asked)} parties sent a key; a group of {smallest} is too small, {least} are needed.",
                remedy="Ask again, ask more parties, or make larger groups.",
            )
        letters: dict[str, bytes] = {}
        for ids in groups:
            publics, signatures = (b"".join(keys[id][i] for id in ids) for i in (0, 1))
            letter = GROUP.pack(**head, terms=terms(encoding, context), ids=list(ids), keys=publics, signatures=signatures)
            letters |= dict.fromkeys(ids, letter)
        answers = yield Step("contribution", letters, contributes=True)
        return self._sum(groups, self._rows(asked, answers, encoding, head), encoding)

    def _keys(
        self, asked: tuple[str, ...], answers: Mapping[str, bytes], head: Mapping[str, Any]
    ) -> dict[str, tuple[bytes, bytes]]:
        """Each party's public key and signature; an answer that is none counts as lost, as does a key that was met before."""
        found: dict[str, tuple[bytes, bytes]] = {}
        met: set[bytes] = set()
        probe = AgreementKey.fresh()  # all others of a group would refuse a key of low order, and the group be lost
        for id in asked:
            if id not in answers:
                continue
            try:
                session, round, public, signature = KEY.unpack(answers[id])
                probe.agree(public)
                message = b"" if self.roster is None else _announced(session, round, id, public, self.roster)
                self._signed(id, signature, message)
            except HedgerowError:
                continue
            if (session, round) == tuple(head.values()) and public not in met:
                met.add(public)
                found[id] = (public, signature)
        return found

    def _rows(
        self, asked: Iterable[str], answers: Mapping[str, bytes], encoding: RingEncoding, head: Mapping[str, Any]
    ) -> dict[str, Array]:
        """Each party's masked row; an answer that is none counts as lost."""
        length, found = encoding.size * encoding.bits // 8 + CHECK, {}
        for id in asked:
            if id not in answers:
                continue
            try:
                session, round, row, signature = ROW.unpack(answers[id])
                self._signed(id, signature, b"" if self.roster is None else _sent(session, round, id, row))
            except HedgerowError:
                continue
            if (session, round) == tuple(head.values()) and len(row) == length:
                found[id] = np.frombuffer(row, WORDS[encoding.bits])
        return found

    def _signed(self, id: str, signature: bytes, message: bytes) -> None:
        if self.roster is not None:
            self.roster.verify(id, signature, message)
        elif signature:
            raise MessageRefused(f"{id!r} signs, and this server has no roster.", remedy="Give the server the roster.")

    def _sum(self, groups: list[tuple[str, ...]], rows: Mapping[str, Array], encoding: RingEncoding) -> Total:
        total = np.zeros(encoding.size, WORDS[encoding.bits])
        counted: set[str] = set()
        for group in groups:
            if all(id in rows for id in group):
                found = np.sum([rows[id] for id in group], axis=0, dtype=total.dtype)
                if not found[encoding.size :].any():
                    total += found[: encoding.size]
                    counted.update(group)
        if not counted:
            raise RoundRefused(
                f"none of {len(groups)} groups is complete, so that masks do not cancel.",
                remedy="Ask again without the parties that were lost, in smaller groups, or with an aggregation that recovers.",
            )
        masked = {id: row[: encoding.size] for id, row in rows.items()}
        return Total(total, tuple(id for id in rows if id in counted), masked)
