"""Standardise the records of stores by numbers that stores do not learn: the "encrypted data request", through a federation.

    m, s        <- secure_scaling, one sum                      the server learns them, through the federation's own channel
    request     store   -> server   E(x)  under its own key
    reply       server  -> store    E((x - m) / s)
    store       keeps its standardised values in place of its record, for questions to come

Declared ranges become the same public range for every column: one computed from mean and scale would tell both. Each store
is a party with one record; of two records it could solve for mean and scale (`hedgerow.crypto.privfl.scaling`).

For engines of one process, which hold every store's side: keys, and the standardised values afterwards. It is no program:
whoever runs the simulation calls it, and what it asks goes through the federation's own channel and ledger.

Releases : n, sums (k,) and sums of squares (k,), once; then the number of stores that were answered.
Unit     : record.
Source   : van Aarle 2021, section 3.2, after Mandal & Gong 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.aggregation import Aggregation
from hedgerow.core.arrays import Array, Layout
from hedgerow.core.channel import Channel
from hedgerow.core.conversation import Contribution, Correspondent, Sessions
from hedgerow.core.engine import Engine, Inbox, Outbox
from hedgerow.core.federation import Federation, handle, inside
from hedgerow.core.party import Parties, Party
from hedgerow.core.question import local
from hedgerow.crypto.aggregation import carry
from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.privfl import ScalingGrid, ScalingParty, ScalingServer
from hedgerow.errors import SchemaInvalid, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.stats.columns import chosen, matrix, schema_of
from hedgerow.stats.hidden.sso import secure_scaling

from .simulation import records

if TYPE_CHECKING:
    from hedgerow.data import Column

STORES = Layout((("stores", ()),))


def hidden_standardise(
    federation: Federation,
    columns: Sequence[str] | None = None,
    *,
    reach: float = 16.0,
    key_bits: int = 2048,
    insecure: bool = False,
) -> Federation:
    """Return the federation of those stores that were answered, with their columns standardised.

    Parameters
    ----------
    federation : Federation
        Of one-record stores in one process, with nothing prepared yet. Its channel protects the sums; the rest needs none.
    columns : sequence of str, optional
        With declared ranges; every number and integer among the features by default.
    reach : float
        Largest absolute standardised value, a power of two: the columns' declared range from then on, so choose it without
        looking at the data.
    key_bits : int
        Length of each store's key, which takes a tenth of a second to make at 2048 bits.
    insecure : bool
        Allows short keys, for tests.

    Raises
    ------
    SettingsInvalid (HR-511)
        A party has more than one record, the federation is a cohort or has prepared columns, or `reach` is no power of two.
    UnlawfulChannel (HR-211)
        The channel shows rows.
    UnboundedSum (HR-210), SchemaInvalid (HR-409)
        A column declares no range, or is no number.
    RangeExceeded (HR-243)
        A declared range is wider than `reach` standard deviations; no store was asked for its record.
    """
    held, values = records(federation), inside(federation)
    _refuse_unfit(federation, held, reach)
    schema = schema_of(federation)
    if columns is None:
        columns = [c.name for c in schema if c.role == "feature" and c.kind in ("number", "integer") and not c.shape]
    read = chosen(schema, columns, ("number", "integer"))
    ends = [_range(column) for column in read]
    found = secure_scaling(federation, columns)
    grid = ScalingGrid(tuple(low for low, _ in ends), tuple(high for _, high in ends), reach)
    means, scales = np.array(found.means), np.array(found.scales)
    requests = Requests(ScalingServer(grid, means, scales, bits=key_bits, insecure=insecure), key_bits, insecure)
    handle(values._replace(channel=Channel(aggregation=requests))).sum(partial(record, columns=found.names))
    for column in read:
        schema = schema.replace(replace(column, kind="number", unit="sd", low=-reach, high=reach))
    engine: Any = replace(values.run.engine, held=_scaled(held, requests, found.names))  # type: ignore[type-var]
    run = replace(values.run, engine=engine, schema=schema, sessions=Sessions())
    return handle(values._replace(run=run, cohort=replace(values.cohort, members=engine.parties)))


@local
def record(broadcast: None, party: Party, rng: Any, *, columns: tuple[str, ...]) -> Any:
    """A store's record, which its own side encrypts."""
    return matrix(party, columns)


@dataclass(frozen=True, eq=False)
class Requests(Aggregation):
    """Encrypted data requests as an engine and a channel see them; what is released is how many stores were answered."""

    server: ScalingServer
    key_bits: int
    insecure: bool
    name: str = "encrypted data request"
    hides_rows: bool = True
    largest: float = 1.0
    shows: str = "the server sees ciphertexts under stores' own keys, and how many stores it answered"

    def fit(self, outbox: Outbox) -> None:
        """A request shows nothing, however few send one."""

    def bytes(self, numbers: float, parties: int) -> float:
        """A ciphertext for each number, and the key with its proof, in place of four bytes to a number."""
        return numbers * (self.key_bits / 4 - 4) + 9 * self.key_bits / 8

    def bytes_down(self, numbers: float) -> float:
        """A reply for each request; nothing is broadcast."""
        return numbers * self.key_bits / 4

    def ask(self, engine: Engine, outbox: Outbox, sessions: Sessions) -> Inbox:
        """Standardise the stores of an outbox."""
        carried = carry(self.server.standardise(outbox.ids), engine, outbox, self)
        answered: tuple[str, ...] = carried.result
        return Inbox(answered, STORES, np.array([float(len(answered))]), masked=True, codes=carried.codes, sent=carried.sent)

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, Correspondent]:
        """Every store's side, with a key of its own."""
        return {id: ScalingParty(id, PaillierKey.fresh(self.key_bits, insecure=self.insecure)) for id in ids}

    def contribution(self, outbox: Outbox, layout: Layout) -> Callable[[Array], Contribution]:
        """Return the function by which a store hands its record to its side."""
        return partial(Contribution, layout, encoding=self.server.grid)


def _range(column: Column) -> tuple[float, float]:
    """The declared range of a column, or a refusal."""
    if column.role in ("weight", "offset"):
        raise SchemaInvalid(f"{column.name!r} is the {column.role} of the records.", remedy="Leave it out.")
    if column.low is None or column.high is None:
        raise UnboundedSum(
            f"column {column.name!r} declares no range, of which the steps of an encrypted record are made.",
            remedy="Declare it: [data] ranges = { age = [18, 90] }.",
        )
    return float(column.low), float(column.high)


def _scaled(held: Parties, requests: Requests, names: tuple[str, ...]) -> Parties:
    """The stores that have their values, with them in place of what they had."""
    sides: Mapping[str, ScalingParty] = held.correspondents.pop(requests)
    done = [id for id in held.ids if sides[id].scaled is not None]
    rows, values = np.array([held.position[id] for id in done]), np.stack([np.asarray(sides[id].scaled) for id in done])
    columns = {name: column[rows] for name, column in held.columns.items()} | dict(zip(names, values.T, strict=True))
    after = Parties(done, columns, held.sizes[rows], held.w[rows])
    after.states = held.states
    return after


def _refuse_unfit(federation: Federation, held: Parties, reach: float) -> None:
    """Refuse, before anybody is asked, what cannot be standardised in this way."""
    took_turns = any(entry.part is not None and entry.part.partition == 0 for entry in federation.ledger.entries)
    if federation.is_cohort or federation.prepares or took_turns or type(held) is not Parties or (held.sizes != 1).any():
        raise SettingsInvalid(
            "hidden standardisation of a cohort, of prepared columns, of parties that took turns or have several records.",
            remedy="Begin with the whole federation, one party for each record; otherwise take `standardise`.",
        )
    if not federation.protection.hides_rows:
        raise UnlawfulChannel(
            "hidden standardisation asks for sums of x and its square, and with plain aggregation the server would see every "
            "store's own.",
            remedy="Protect them: stores.protect(aggregation=SecAgg(records=1)).",
        )
    if not (1 <= reach <= 2**20 and np.log2(reach).is_integer()):
        raise SettingsInvalid(f"reach is {reach!r}.", remedy="A power of two from 1 to 2^20, such as 16.")
