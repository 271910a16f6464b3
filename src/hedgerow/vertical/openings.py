"""What a party's desk keeps of openings, in entries of bytes and arrays."""

from __future__ import annotations

from collections import OrderedDict

from hedgerow.core.desk import Desk
from hedgerow.core.randomness import Entropy
from hedgerow.crypto.cross.pads import PadMemory

SECRET = "cross secret"
OWN = "cross pads"
KEY_BYTES = 32


def of_desk(desk: Desk, names: tuple[str, ...], entropy: Entropy) -> PadMemory:
    """What a party remembers; a secret of its own where it has none yet."""
    secret = desk.get(SECRET)
    if secret is None:
        secret = {"secret": entropy(KEY_BYTES)}
        desk.put(SECRET, secret)
    own = desk.get(OWN) or {}
    shelves = {name: _shelf(desk, name) for name in names}
    pads = OrderedDict((own[f"{i} name"], (own[f"{i} id"], own[f"{i} seed"])) for i in range(len(own) // 3))
    return PadMemory(bytes(secret["secret"]), pads, {name: shelf for name, shelf in shelves.items() if shelf})


def to_desk(desk: Desk, memory: PadMemory) -> None:
    """Keep what a party remembers."""
    own: dict[str, bytes] = {}
    for i, (name, (id, seed)) in enumerate(memory.own.items()):
        own |= {f"{i} name": name, f"{i} id": id, f"{i} seed": seed}
    desk.put(OWN, own)
    for party, shelf in memory.opened.items():
        entry = {f"{i} id": id for i, id in enumerate(shelf)} | {f"{i} words": words for i, words in enumerate(shelf.values())}
        desk.put(_entry(party), entry)


def _entry(party: str) -> str:
    return f"cross opened by {party}"


def _shelf(desk: Desk, party: str) -> OrderedDict[bytes, object]:
    kept = desk.get(_entry(party)) or {}
    return OrderedDict((kept[f"{i} id"], kept[f"{i} words"]) for i in range(len(kept) // 2))
