"""SecAgg: totals of many parties' rows, of which the server sees only masked ones, and any few may drop out.

    epoch   keys            a fresh agreement key of every party
            shares          secrets for R rounds, shared among k neighbours, sealed
    round   contribution    y_u = x_u + PRG(b_u) + sum over neighbours v of sgn(u, v) PRG(s_uv)      modulo 2^bits
            consistency     survivors' signatures on who survived; only against a server that may lie
            unmask          shares of b_v of those who survived, of e_v of those who dropped out; never both of one party

e_u opens the list of u's seeds s_uv of that round. In the papers what is shared is u's mask key instead, one for each round,
and the server agrees with it in u's place: a key agreement per neighbour and round at every party. Opening the list gives
the server the same seeds, of that round and no other, and costs no agreement in a round; the price is k times 32 bytes for
each round, sent at set-up. Each round's secrets are independent of every other's, so a repaired dropout opens nothing of the
past or the future.

Adversary : "curious": the server follows the protocol, reads everything, and shares what it sees with fewer than t
            neighbours of anybody; it tells parties who their neighbours are. "active": the server may also lie; a roster
            pins identities, parties derive their neighbours themselves, and no secret is revealed before t neighbours
            have signed the same set of survivors.
Reveals   : the total, who contributed, and when. What a total gives away is for differential privacy to bound.
Not stood : parties that send wrong rows. Wrong shares are found and left out where there are others, else the round is void,
            never its total wrong; a wrong list of seeds, like a wrong row, can spoil a total, but shows nobody's row. A party
            whose boxes do not open is refused by its neighbours, and can stop every round: the server cannot tell who it is.
Source    : Bonawitz et al. 2017, Bell et al. 2020. Differs: epochs of several rounds, sealed lists, masks bound to context and
            cohort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .epoch import Gateway
    from .party import SecAggParty
    from .server import Server
    from .settings import SecAgg

__all__ = ["Gateway", "SecAgg", "SecAggParty", "Server"]

lazily(__name__)
