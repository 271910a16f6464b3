"""The waist: programs ask bounded sums of parties; how a sum travels and where it runs are chosen outside the program."""

from .bound import Bound, l1, l2, linf
from .channel import Channel, Plain
from .events import Event, Sampling
from .federation import Federation
from .ledger import Entry, Ledger
from .party import Parties, Party
from .query import local

__all__ = [
    "Bound",
    "Channel",
    "Entry",
    "Event",
    "Federation",
    "Ledger",
    "Parties",
    "Party",
    "Plain",
    "Sampling",
    "l1",
    "l2",
    "linf",
    "local",
]
