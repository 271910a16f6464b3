"""A party's side of verified shares: its row goes with a proof, shared as the row is, that it is within its bound."""

from __future__ import annotations

import secrets

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from ..conversation import Contribution
from ..field_encoding import FieldEncoding
from ..forged_rows import forged
from ..keys import seal
from ..proofs.letters import NONCE_BYTES
from ..streams import ZERO_NONCE, mask_bytes
from .derived import correction_key, proof_context, public_mark, sealed_about, share_key
from .letters import PROVED
from .party import AdditiveParty
from .round_task import RoundTask


class ProvingParty(AdditiveParty):
    """A party whose rows are proved; parameters and steps as those of `AdditiveParty`."""

    def _task(self, contribution: Contribution) -> RoundTask:
        encoding = contribution.encoding
        if not isinstance(encoding, FieldEncoding):
            raise SettingsInvalid("a row of a ring, and verified shares are of a field.", remedy="Encode it for the field.")
        return RoundTask(encoding.digest, contribution.context, contribution.noise, self._proof_words(encoding))

    def _proof_words(self, encoding: FieldEncoding) -> bytes:
        return encoding.proof

    def _sent(self, round: int, made_for: bytes, steady: int, contribution: Contribution) -> bytes:
        nonce = self._nonce()
        public, letter = self._shared(made_for, nonce, contribution.encoding, contribution.row)
        box = seal(correction_key(self._bonds[-1], made_for), letter, sealed_about(made_for, nonce, public))
        marks = b"".join(public_mark(share_key(one, made_for), made_for, nonce, public) for one in self._bonds[:-1])
        return PROVED.pack(epoch=self._epoch, round=round, steady=steady, nonce=nonce, public=public, marks=marks, box=box)

    def _nonce(self) -> bytes:
        return secrets.token_bytes(NONCE_BYTES)

    def _shared(self, made_for: bytes, nonce: bytes, encoding: FieldEncoding, row: Array) -> tuple[bytes, bytes]:
        """The public part, and the letter for the aggregator that opens letters."""
        proved, steps = encoding.proved, np.ascontiguousarray(encoding.encode(row), np.int64)
        seeds = [mask_bytes(share_key(one, made_for), ZERO_NONCE, proved.seed_bytes) for one in self._bonds[:-1]]
        ctx = proof_context(self._epoch, made_for, self._public)
        how = {} if encoding.heeds_range else {"shard": forged}
        return proved.shard(ctx, steps, nonce, seeds, secrets.token_bytes(proved.own_bytes), **how)
