"""An aggregator's key for shares: one lasting X25519 key, beside the keys that seal and sign its letters.

    keys/shares.json    0600: the private half
    NAME.card           its public half under the aggregator's name, signed by its identity; to be sent to every station

A station pins the public half. The card goes by mail; the fingerprint, which covers the identity that signed it, by telephone.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.messages import MessageForm, Octets, Words, exactly
from hedgerow.errors import CannotWrite, KeyInvalid
from hedgerow.network.identity.enrolment_files import EnrolmentFile
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.identity.trust_store import fingerprint
from hedgerow.store import write_bytes

FILE, FORMAT = "shares.json", 1

CARD = MessageForm("card", station=Words(63), identity=exactly(32), shares=exactly(32), previous=Octets(0, 32), made=Words(32))


class AggregatorCard(EnrolmentFile):
    """What an aggregator gives to stations: its key for shares, under its name."""

    form, signer = CARD, "identity"

    @property
    def name(self) -> str:
        """Whose key it is."""
        return str(self.values["station"])

    @property
    def shares(self) -> bytes:
        """The public key for shares, 32 bytes."""
        return bytes(self.values["shares"])

    @property
    def fingerprint(self) -> str:
        """What the two people compare."""
        return fingerprint(self.values["station"], self.values["identity"])


def card_of(keys: KeyFolder, shares: bytes, now: datetime | None = None) -> AggregatorCard:
    """The card of an aggregator's key for shares."""
    mine, today = keys.key_material, f"{now or datetime.now(UTC):%Y-%m-%d}"
    return AggregatorCard.signed(mine.identity, station=keys.name, identity=mine.identity.public, shares=shares, made=today)


def make_share_key(folder: Path) -> AgreementKey:
    """Make a key for shares in a key folder, in the place of an older one.

    Raises
    ------
    CannotWrite (HR-104)
    """
    key = AgreementKey.fresh()
    told = {"hedgerow": FORMAT, "shares": key.private.hex(), "made": f"{datetime.now(UTC):%Y-%m-%d}"}
    try:
        write_bytes(folder / FILE, json.dumps(told, indent=1).encode(), private=True)
    except CannotWrite as error:
        raise CannotWrite(error.reason, remedy="Free space or correct its permissions.", asked=False) from None
    return key


def read_share_key(folder: Path) -> AgreementKey:
    """The key for shares of a key folder.

    Raises
    ------
    KeyInvalid (HR-244)
        There is none, or it is damaged.
    """
    path = folder / FILE
    try:
        found = json.loads(path.read_bytes())
        if found["hedgerow"] != FORMAT:
            raise ValueError("another format")
        return AgreementKey.from_bytes(bytes.fromhex(found["shares"]))
    except FileNotFoundError:
        raise KeyInvalid(
            f"{folder} holds no key for shares.", remedy="Keys of an aggregator: hedgerow aggregator init", asked=False
        ) from None
    except (OSError, ValueError, KeyError, TypeError, KeyInvalid) as error:
        raise KeyInvalid(
            f"{path} is damaged, or of another version: {error}.",
            remedy="Restore the folder from a backup, or make a new key: hedgerow aggregator rekey",
            asked=False,
        ) from None
