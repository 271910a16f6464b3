"""What a party's desk keeps of openings: their words in places that others take later, and which are where."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from hedgerow.core.desk import Desk
from hedgerow.core.randomness import Entropy
from hedgerow.crypto.cross.pads import ID_BYTES, KEPT, PadMemory

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


def to_desk(desk: Desk, names: tuple[str, ...], memory: PadMemory) -> None:
    """Keep what a party remembers; words that are there already are not written again."""
    own: dict[str, bytes] = {}
    for i, (name, (id, seed)) in enumerate(memory.own.items()):
        own |= {f"{i} name": name, f"{i} id": id, f"{i} seed": seed}
    desk.put(OWN, own)
    for party in names:
        shelf = memory.opened.get(party, OrderedDict())
        places = {id: place for id, place in _places(desk, party).items() if id in shelf}
        free = [place for place in range(KEPT) if place not in places.values()]
        for id, words in shelf.items():
            if id not in places:
                places[id] = free.pop(0)
                desk.put(_entry(party, places[id]), {"id": id, "words": words})
        desk.put(_index(party), {"ids": b"".join(shelf), "places": bytes(places[id] for id in shelf)})


def _index(party: str) -> str:
    return f"cross opened by {party}"


def _entry(party: str, place: int) -> str:
    return f"cross opening {place} of {party}"


def _places(desk: Desk, party: str) -> dict[bytes, int]:
    """Where the words of each opening of a party are, the last used at the end."""
    index = desk.get(_index(party)) or {"ids": b"", "places": b""}
    ids, places = bytes(index.get("ids", b"")), bytes(index.get("places", b""))
    return {ids[i * ID_BYTES : (i + 1) * ID_BYTES]: place for i, place in enumerate(places)}


def _shelf(desk: Desk, party: str) -> OrderedDict[bytes, Any]:
    found = OrderedDict[bytes, Any]()
    for id, place in _places(desk, party).items():
        entry = desk.get(_entry(party, place))
        if entry is not None and bytes(entry["id"]) == id:  # a party may have been killed between two entries
            found[id] = entry["words"]
    return found
