"""The waist: programs ask bounded sums of parties; how a sum travels and where it runs are chosen outside the program."""

from hedgerow.arguments import checked_methods

from .bound import Bound, l1, l2, linf
from .declaration import Case, Declaration, Key, program
from .federation import Federation
from .ledger import Ledger
from .party import Parties, Party
from .question import local, travels

__all__ = [
    "Bound",
    "Case",
    "Declaration",
    "Federation",
    "Key",
    "Ledger",
    "Parties",
    "Party",
    "l1",
    "l2",
    "linf",
    "local",
    "program",
    "travels",
]

checked_methods(Federation, first=("protect", "split", "stream"))
