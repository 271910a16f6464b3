"""Sealing between parties: letters that a server carries and cannot read.

    secret(u, v) = HKDF(X25519(key_u, key_v), names of both)               agreed on once, in an alignment
    box          = salt | seal(HKDF(secret, session, round, from, to, salt), letter)

Each box has a key of its own by a fresh salt. It is bound to session, round, sender and recipient, so that a server cannot put
one letter in the place of another. Keys of parties on a roster are signed by their identities; without a roster a server that
lies could put itself between two parties, and is assumed not to.

Who sees: the server the size of a box, its sender and its recipient.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from hedgerow.errors import KeyInvalid, MessageRefused

from .keys import AgreementKey, Identity, Roster, derive, seal, unseal
from .messages import digest

SALT = 16


class PairSecrets:
    """What a party shares with each of the others: 32 bytes by name.

    Parameters
    ----------
    me : str
    shared : mapping from party to bytes
    """

    def __init__(self, me: str, shared: Mapping[str, bytes]) -> None:
        self.me, self.shared = me, dict(shared)

    def secret(self, other: str) -> bytes:
        """The 32 bytes that this party shares with another.

        Raises
        ------
        KeyInvalid (HR-244)
            There are none.
        """
        try:
            return self.shared[other]
        except KeyError:
            raise KeyInvalid(f"{self.me} shares no secret with {other!r}.", remedy="Align the parties first.") from None

    def sealed(self, letter: bytes, to: str, session: bytes, round: int) -> bytes:
        """A box for another party."""
        salt = secrets.token_bytes(SALT)
        return salt + seal(self._key(to, salt), letter, _about(session, round, self.me, to))

    def opened(self, box: bytes, sender: str, session: bytes, round: int) -> bytes:
        """The letter in a box of another party.

        Raises
        ------
        MessageRefused (HR-242)
            It was altered, or is from another round, session or party.
        """
        if len(box) < SALT:
            raise MessageRefused(f"a box of {len(box)} bytes.", remedy="Nothing of it was used.")
        return unseal(self._key(sender, box[:SALT]), box[SALT:], _about(session, round, sender, self.me))

    def _key(self, other: str, salt: bytes) -> bytes:
        return derive(self.secret(other), "peer letter", salt)


def _about(session: bytes, round: int, sender: str, to: str) -> bytes:
    return digest("peer letter", session, round.to_bytes(4, "little"), sender.encode(), to.encode())


class Introduction:
    """How a party comes to share secrets with the others of a session: a fresh key, signed where there is a roster.

    Parameters
    ----------
    me : str
    session : bytes
    names : tuple of str
        All parties, in order.
    roster, identity : optional
        Pinned identities of all, and this party's.
    """

    def __init__(
        self, me: str, session: bytes, names: tuple[str, ...], roster: Roster | None = None, identity: Identity | None = None
    ) -> None:
        self.me, self.session, self.names, self.roster = me, session, names, roster
        self._key = AgreementKey.fresh()
        signature = b"" if identity is None else identity.sign(self._announced(me, self._key.public))
        self.letter = self._key.public + signature

    def secrets(self, came: Mapping[str, bytes]) -> PairSecrets:
        """What this party shares with the others, from their letters.

        Raises
        ------
        KeyInvalid (HR-244), MessageRefused (HR-242)
            A letter is missing, has no key, or is not signed by whom the roster names.
        """
        if set(came) != set(self.names) - {self.me}:
            raise MessageRefused("keys did not come from all other parties.", remedy="Start anew.")
        shared = {}
        for other, letter in came.items():
            public, signature = letter[:32], letter[32:]
            if self.roster is not None:
                self.roster.verify(other, signature, self._announced(other, public))
            pair = "\0".join(sorted((self.me, other))).encode()
            shared[other] = derive(self._key.agree(public), "peers", digest("pair", self.session, pair))
        return PairSecrets(self.me, shared)

    def _announced(self, id: str, public: bytes) -> bytes:
        return digest("peer key", self.session, id.encode(), public, *(name.encode() for name in self.names))
