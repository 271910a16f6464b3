"""Additive shares: a row is split among a few aggregators that do not collude; each sees noise, together they give the total.

All shares but one are streams that a party and an aggregator both make from a key they agreed on, so they are not sent;
the last is the correction that makes the shares add up to the row, sealed for the last aggregator. No party needs to know
of another, and any party may be lost at any step.

    once in an epoch of many rounds:
        enrol         a party makes one X25519 key, agrees on a key with each aggregator (theirs are pinned), forgets its
                      own half, and sends the public half; the server passes it on to the aggregators
    for each round:
        contribution  c_u = encode(x_u) - sum over a < k of PRG(s_ua)   mod 2^bits, sealed for aggregator k
                      s_ua = HKDF(key_ua, "additive share", digest of round, ring, encoding, model and question, noise, and
                             of the smallest set that the party will be part of)
        collect       aggregator k opens the corrections and says whose are sound: the set U
        agree         each aggregator checks U, binds itself to it, and signs it for each of the others
        total         each checks that all others agreed on the same U, and gives sum over U of its shares, plus the noise
                      that parties were told it adds
                      the server adds the k totals

The sealed letters are checked by the aggregator that opens them: one that was altered, repeated, or made for another
round, model or question is left out of U.

Verified shares (`proving`, `verifying`, `verified_server`): rows are numbers modulo q = 2^64 - 2^32 + 1, each with a proof,
shared as the row is, that it is within its bound. A row that is not proved is left out; no party is told why.

    once in an epoch, after the first parties joined and before any row:
        offer, settle aggregators agree on a verification key, which no party and no server knows
    for each round:
        contribution  correction of row, bits and proofs, sealed for aggregator k; public part and nonce, which the other
                      aggregators know to be the party's by a mark under the key of its share
        tell          in place of collect, some megabytes of corrections at a time: what each aggregator computes of its
                      shares of row and proof, at a point of the verification key's; with a MAC for each of the others
        judge         each adds up what all told, and decides: the proofs hold, the parts of joint randomness are those that
                      the party gave to all. It adds the rows that it accepts, and forgets the others
        agree, total  as above, U being the rows that it accepted

The server sees     : sealed corrections, k totals of which any k - 1 are uniform, and the total; with noise at aggregators
                      the total with the noise of all k.
A party sees        : nothing of the others.
An aggregator sees  : who took part, its own shares (uniform), and nothing of rows or total.
Colluders see       : k - 1 aggregators, the server and all other parties see nothing of a row beyond the total, which has the
                      noise of the last aggregator in it; all k aggregators together see every row.
Refused rows        : how many there were is public; the server knows whose. All that is told of an honest row is uniform
                      but for what makes its proof hold.
Not stood           : a party that sends a wrong row moves the total as far as the ring allows, unless rows are verified; an
                      aggregator that gives a wrong sum moves it as far as it likes, or lets any row in by a false word: proofs
                      hold while all aggregators are honest. Neither is seen.
Assumes             : one honest aggregator, that refuses sets below its `least`; parties that pinned the aggregators' keys.
                      A server that makes up parties fills U with them, unless aggregators have a roster. Exact totals of
                      a study whose parties have owners are over one chain of sets (`given`).
Source              : additive sharing as in PriMIA's sums (Kaissis et al. 2021, described by Haug 2022, section 5.1). Differs:
                      streams in place of k - 1 shares of full size, and aggregators agree on U before they sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .aggregator import Aggregator
    from .aggregator_noise import Drawing
    from .given import TotalsGiven
    from .party import AdditiveParty
    from .proving import ProvingParty
    from .server import AdditiveServer, AggregatorLink
    from .settings import AdditiveShares
    from .verified_server import VerifiedServer
    from .verifying import VerifyingAggregator

__all__ = [
    "AdditiveParty",
    "AdditiveServer",
    "AdditiveShares",
    "Aggregator",
    "AggregatorLink",
    "Drawing",
    "ProvingParty",
    "TotalsGiven",
    "VerifiedServer",
    "VerifyingAggregator",
]

lazily(__name__)
