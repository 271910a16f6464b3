"""Liars: which parties of a simulation act, how, and in which questions."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.question import Question
from hedgerow.core.randomness import Streams
from hedgerow.errors import SettingsInvalid

from .act import Act, Knows, RecordsAct, RowsAct


@dataclass(frozen=True)
class Liars:
    """Parties that act.

    Parameters
    ----------
    parties : tuple of str
        Their names.
    acts : tuple of Act
        Carried out one after the other: first those on records, then lies in rows, then forged rows.
    from_round : int
        The first question of the program in which they act, from 1. Questions are counted, not rounds: a round may ask several.
    every : int
        They act in each so many questions from then on.
    until : int, optional
        The last such question.
    keeps : tuple of str
        Keys of a contribution that acts on rows leave as they are: by default the weight `n` of a mean, by which the server
        divides. A row whose update and weight are both multiplied is a party that counts more often, and no other mean.
    """

    parties: tuple[str, ...]
    acts: tuple[Act, ...]
    from_round: int = 1
    every: int = 1
    until: int | None = None
    keeps: tuple[str, ...] = ("n",)

    def __post_init__(self) -> None:
        if self.from_round < 1 or self.every < 1 or (self.until is not None and self.until < self.from_round):
            raise SettingsInvalid(
                f"acts from question {self.from_round}, every {self.every}, until {self.until}.",
                remedy="Questions count from 1, and the last one is not before the first.",
            )

    @property
    def on_records(self) -> tuple[RecordsAct, ...]:
        return tuple(act for act in self.acts if isinstance(act, RecordsAct))

    @property
    def on_rows(self) -> tuple[RowsAct, ...]:
        return tuple(act for act in self.acts if isinstance(act, RowsAct))

    @property
    def lying(self) -> tuple[RowsAct, ...]:
        """Lies in rows, which the party's own channel closes."""
        return tuple(act for act in self.on_rows if act.kind == "lie")

    @property
    def forging(self) -> tuple[RowsAct, ...]:
        """Changes of rows as they leave, which come after all lies."""
        return tuple(act for act in self.on_rows if act.kind == "forge")

    @property
    def knows(self) -> Knows:
        """The most that any act sees."""
        order: tuple[Knows, ...] = ("own", "colluders", "all")
        return max((act.knows for act in self.on_rows), key=order.index, default="own")

    @property
    def forgers(self) -> tuple[str, ...]:
        """Liars whose rows no code of their own limits."""
        return self.parties if any(act.kind == "forge" for act in self.on_rows) else ()

    def act_in(self, question: Question) -> bool:
        """Whether they act in a question of a program; in measurements aside nobody does."""
        number = question.number
        late = self.until is not None and number > self.until
        return question.counts and number >= self.from_round and not late and (number - self.from_round) % self.every == 0


def chosen(names: tuple[str, ...], share: float, streams: Streams) -> tuple[str, ...]:
    """So large a share of parties, at least one, drawn by the seed of a simulation.

    Raises
    ------
    SettingsInvalid (HR-511)
        The share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise SettingsInvalid(f"a share of {share} of the parties lies.", remedy="Give a share between 0 and 1, or names.")
    drawn = streams.stream(0, "server", "liars").generator.permutation(len(names))[: max(1, round(share * len(names)))]
    return tuple(names[i] for i in sorted(drawn))
