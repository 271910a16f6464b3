"""The states of a study at a coordinator, and which may follow which.

    submitted -> boarding -> running <-> waiting -> finished
                                                    refused      a guard or a person said no
                                                    cancelled    its researcher did
                                                    failed       it cannot be computed, or nobody came

Any state that is no end may become one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

State = Literal["submitted", "boarding", "running", "waiting", "finished", "refused", "cancelled", "failed"]

ENDS: frozenset[State] = frozenset({"finished", "refused", "cancelled", "failed"})
"""States that a study does not leave."""

_GIVEN_UP: frozenset[State] = frozenset({"refused", "cancelled", "failed"})
NEXT: dict[State, frozenset[State]] = {
    "submitted": _GIVEN_UP | {"boarding"},
    "boarding": _GIVEN_UP | {"running"},
    "running": ENDS | {"waiting"},
    "waiting": _GIVEN_UP | {"running"},
    **dict.fromkeys(ENDS, frozenset()),
}
"""What may follow each state."""

STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True)
class Boarded:
    """What a station said of a study.

    Attributes
    ----------
    status : {"away", "waiting", "approved", "refused"}
    code : str
        Of a refusal; the sentence stays in the station's log.
    parties : tuple of str
        Whose answers the station gives.
    submission : bytes
        Digest of what it decided on.
    signature : bytes
        Of that decision, by the station's identity.
    """

    station: str
    status: str = "away"
    code: str = ""
    parties: tuple[str, ...] = ()
    submission: bytes = b""
    signature: bytes = b""
    at: float = 0.0


@dataclass(frozen=True)
class Kept:
    """A study as the store keeps it.

    Attributes
    ----------
    id : str
        Its name and a number; also the name of its run folder.
    key : bytes
        16 random bytes that name it in letters.
    text : str
        The resolved study, as TOML.
    asked : tuple of str
        Stations that the researcher named; none for all on the roster.
    reason : str
        Why it is in its state, in words.
    life : int
        Grows before letters go out for the first time, or after a pause or a restart: stations answer no earlier one.
    pauses : int
        Pauses in a row without a round in between.
    due : float
        When to go on, in seconds since 1970.
    since : float
        When it last came further.
    round, rounds : int
        How far the program is; of how many, where that is known.
    agreed : bytes
        What all stations were told when they were asked to board; b"" before.
    cancelled : bool
        Whether its researcher wants it to end.
    untold : tuple of str
        Stations that have not been told its end.
    """

    id: str
    key: bytes
    text: str
    asked: tuple[str, ...]
    state: State
    reason: str
    submitted: float
    changed: float
    life: int = 0
    pauses: int = 0
    due: float = 0.0
    since: float = 0.0
    round: int = 0
    rounds: int | None = None
    agreed: bytes = b""
    cancelled: bool = False
    untold: tuple[str, ...] = ()
    boarded: tuple[Boarded, ...] = field(default=())

    @property
    def ended(self) -> bool:
        return self.state in ENDS
