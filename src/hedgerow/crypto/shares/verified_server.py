"""The server's side of verified shares: it carries what aggregators tell one another, and learns which rows they accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Conversation
from hedgerow.errors import MessageRefused, RoundRefused, SettingsInvalid

from ..cohort import bitmap, cut, mask_of
from ..field_encoding import FieldEncoding
from ..fixedpoint import WholeEncoding
from ..keys import TAG_BYTES
from ..proved_rows import FIELD
from .letters import JUDGE, JUDGED, MARK_BYTES, OFFER, OFFER_BYTES, OFFERED, PROVED, SETTLE, SETTLED, TELL, TOLD
from .server import _ALL, AdditiveServer


class VerifiedServer(AdditiveServer):
    """The server's side where rows are proved; parameters as those of `AdditiveServer`.

    The verification key is settled with the first parties of an epoch, before any of them sends a row.
    """

    def _begin(self) -> None:
        super()._begin()
        self._settled = False
        self._public: dict[str, tuple[bytes, bytes, list[bytes]]] = {}

    def _enrol(self, ids: tuple[str, ...]) -> Conversation[tuple[str, ...]]:
        joined = yield from super()._enrol(ids)
        if joined and not self._settled:
            try:
                self._settle()
            except MessageRefused as error:
                self._begin()
                raise RoundRefused(f"an aggregator's answer is not what was asked: {error.reason}", remedy=_ALL) from error
        return joined

    def _settle(self) -> None:
        """Carry what each aggregator adds to the verification key to the others; it is sealed."""
        n = len(self.aggregators)
        offers = []
        for answer in self._all("offer", [OFFER.pack(epoch=self._epoch)] * n):
            epoch, joined = OFFERED.unpack(answer)
            if epoch != self._epoch:
                raise MessageRefused("an offer is for another epoch.", remedy=_ALL)
            offers.append(cut(joined, n, OFFER_BYTES))
        letters = [SETTLE.pack(epoch=self._epoch, boxes=b"".join(offer[j] for offer in offers)) for j in range(n)]
        for answer in self._all("settle", letters):
            SETTLED.unpack(answer)
        self._settled = True

    def _read(self, id: str, letter: bytes, encoding: WholeEncoding) -> tuple[bytes, int, int, bytes]:
        """A party's letter; its public part is kept for the aggregators."""
        proved = _proved(encoding)
        epoch, round, steady, nonce, public, marks, box = PROVED.unpack(letter)
        cut(public, 1, proved.public_bytes)
        cut(box, 1, proved.leader_bytes + TAG_BYTES)
        self._public[id] = nonce, public, cut(marks, len(self.aggregators) - 1, MARK_BYTES)
        return epoch, round, steady, box

    def _sound(self, boxes: dict[str, bytes], encoding: WholeEncoding, about: Mapping[str, Any]) -> Array:
        """Places of the parties whose rows all aggregators accepted."""
        n, accepted = len(self.aggregators), np.zeros(self._n_places, bool)
        at = {"epoch": about["epoch"], "round": about["round"]}
        for part, places in self._parts(boxes):
            outer = {
                "places": bitmap(places),
                "nonces": b"".join(self._public[id][0] for id in part),
                "publics": b"".join(self._public[id][1] for id in part),
            }
            inner = [{"marks": b"".join(self._public[id][2][j] for id in part), "boxes": b""} for j in range(n - 1)]
            inner.append({"marks": b"", "boxes": b"".join(boxes[id] for id in part)})
            letters = [TELL.pack(**about, **outer, **one) for one in inner]
            told = [TOLD.unpack(answer) for answer in self._all("tell", letters)]
            tags = [cut(joined, n, 32) for *_, joined in told]
            heard = {**at, "places": [where for *_, where, _, _ in told], "tolds": [said for *_, said, _ in told]}
            letters = [JUDGE.pack(**heard, tags=b"".join(row[j] for row in tags)) for j in range(n)]
            verdicts = [mask_of(JUDGED.unpack(answer)[-1], self._n_places) for answer in self._all("judge", letters)]
            accepted |= np.logical_and.reduce(verdicts) & places
        return accepted

    def _plus(self, total: Array, share: bytes) -> Array:
        return FIELD.add(total, FIELD.decode(share, len(total)))

    def _left(self, n: int, came: int, least: int) -> None:
        if n < least:
            raise RoundRefused(
                f"{came - n} of {came} rows were refused, since they are not proved; {n} are left, {least} are needed, and "
                "nothing is released.",
                remedy="Ask more parties, or lower `least` of the aggregation. Whose rows were refused is told to nobody.",
            )

    def _refused(self, lost: int) -> int:
        return lost


def _proved(encoding: Any) -> Any:
    if not isinstance(encoding, FieldEncoding):
        raise SettingsInvalid("a row of a ring, and verified shares are of a field.", remedy="Encode it for the field.")
    return encoding.proved
