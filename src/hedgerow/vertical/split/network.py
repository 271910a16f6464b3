"""A network that is split over the parties of an aligned handle: checked as a whole before any party is asked."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.crypto.peers import HUB
from hedgerow.data import Schema
from hedgerow.errors import MissingColumn, ModelInvalid, SettingsInvalid, suggestion
from hedgerow.learn.descent.optimisers import NAMES, name_of, problems, settled
from hedgerow.learn.scale import scale_for
from hedgerow.vertical.leaks import LabelDP, NoPeek, Observer

from .piece import OwnPart, Precision
from .reading import Batches, OwnFeatures, OwnLabel, SplitScale
from .steps import Bottom, Letters, Merge, Top
from .ushape import Middle

TRIED = 4
"""Made-up records on which a network is tried."""


@dataclass(frozen=True, eq=False)
class SplitNetwork:
    """Parts of a network and who holds them.

    Attributes
    ----------
    seat : str
        The label holder.
    bottoms : mapping from party to Bottom
        Of feature holders; the label holder's own among them where it has features.
    top : Top
    schemas : mapping from party to Schema
    middle : Middle, optional
        The part between, of a U-shape.
    shared : bool
        Whether training said that the parties may know the labels.
    """

    seat: str
    bottoms: Mapping[str, Bottom]
    top: Top
    schemas: Mapping[str, Schema]
    middle: Middle | None = None
    shared: bool = False

    @property
    def receiver(self) -> str:
        """Who merges outputs: the label holder, or the holder of the middle."""
        return self.seat if self.middle is None else self.middle.at

    @property
    def senders(self) -> tuple[str, ...]:
        """Feature holders other than who merges."""
        return tuple(party for party in self.bottoms if party != self.receiver)

    @property
    def told(self) -> tuple[str, ...]:
        """Parties that receive slopes of each record, and hold no labels."""
        found = (*self.senders, self.receiver) if self.middle is not None and self.middle.at != HUB else self.senders
        return tuple(party for party in found if party != self.seat)

    @property
    def pieces(self) -> list[tuple[str, OwnPart]]:
        """All parts, each with the party that keeps it."""
        found = [(party, bottom.piece) for party, bottom in self.bottoms.items()] + [(self.seat, self.top.piece)]
        return found if self.middle is None else [*found, (self.middle.at, self.middle.piece)]

    @property
    def ways_back(self) -> list[tuple[tuple[str, ...], tuple[int, int]]]:
        """Which of the slopes go to whom: where they begin, and how many they are."""
        joint = self.top if self.middle is None else self.middle
        if joint.merge == "sum":
            return [(self.senders, (0, joint.width))]
        widths = dict(zip(self.bottoms, joint.widths, strict=True))
        return [((party,), (self.bottoms[party].block[0], widths[party])) for party in self.senders]

    @classmethod
    def of(
        cls,
        schemas: Mapping[str, Schema],
        bottoms: Mapping[str, nn.Module],
        top: nn.Module,
        label: str,
        *,
        features: Mapping[str, Sequence[str]] | None = None,
        batch_size: int = 64,
        optimiser: Any = "SGD",
        learning_rate: float = 0.1,
        optimiser_settings: Mapping[str, Any] | None = None,
        merge: Merge = "sum",
        seed: int = 0,
        held_out: float = 0.0,
        scale: SplitScale = "ranges",
        loss: str | None = None,
        precision: Precision = "float32",
        letters: Letters = "exact",
        name: str = "split",
        middle: nn.Module | None = None,
        middle_at: str = HUB,
        privacy: LabelDP | None = None,
        defence: Any = None,
        nopeek: NoPeek | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Check everything, and try the whole on made-up records.

        Raises
        ------
        MissingColumn (HR-403), ModelInvalid (HR-510), SettingsInvalid (HR-511)
        """
        seat, column = holder_of(schemas, label)
        lawful = {"merge": (merge, Merge), "scale": (scale, SplitScale), "precision": (precision, Precision)}
        for setting, (value, kind) in (lawful | {"letters": (letters, Letters)}).items():
            if value not in get_args(kind):
                raise SettingsInvalid(f"{setting} is {value!r}.", remedy=suggestion(str(value), get_args(kind)))
        if batch_size < 1 or not bottoms:
            raise SettingsInvalid(f"batch_size is {batch_size}, of {len(bottoms)} parts.", remedy="Both are at least one.")
        if not 0 <= held_out < 1:
            raise SettingsInvalid(f"held_out is {held_out}.", remedy="It is a share of the people, from 0 to below 1.")
        if unknown := [party for party in bottoms if party not in schemas]:
            raise SettingsInvalid(f"{unknown[0]!r} is no party.", remedy=suggestion(unknown[0], schemas))
        rule = {"optimiser": optimiser_of(optimiser), "learning_rate": float(learning_rate), "precision": precision}
        rule["settings"] = settled(optimiser_settings or {})
        if wrong := problems(rule["optimiser"], rule["settings"]):
            raise SettingsInvalid("; ".join(wrong) + ".", remedy="See the optimiser's page in the documentation of PyTorch.")
        if not (np.isfinite(learning_rate) and learning_rate > 0):
            raise SettingsInvalid(f"learning_rate is {learning_rate}.", remedy="It is a number above zero.")
        if defence is not None and not callable(getattr(defence, "protect", None)):
            raise SettingsInvalid(f"defence is {defence!r}.", remedy="Give hr.vertical.leaks.MaxNormNoise() or another one.")
        target, batches = OwnLabel.of(schemas[seat], column, loss), Batches(seed, batch_size, float(held_out))
        if privacy is not None and (target.n_classes != privacy.classes or target.loss not in ("cross_entropy", "log_loss")):
            raise SettingsInvalid(
                f"{privacy} is for {privacy.classes} classes; {column!r} has {target.n_classes}, and the loss {target.loss}.",
                remedy=f"Say LabelDP({privacy.epsilon:g}, classes={target.n_classes}). Numbers are not replaced.",
            )
        reads, widths = {}, {}
        for party, module in bottoms.items():
            schema = schemas[party]
            chosen = (features or {}).get(party) or [one for one in schema.features if (party, one) != (seat, column)]
            reads[party] = OwnFeatures.of(schema, chosen, scale_of(module, scale))
            widths[party] = tried(party, module, made_up(schema, reads[party])).shape[1]
        if merge != "concat" and len(set(widths.values())) > 1:
            raise ModelInvalid(f"parts have outputs of {widths} numbers.", remedy=f"Of a {merge} all have the same width.")
        total, starts = sum(widths.values()), np.cumsum([0, *widths.values()])
        made = {}
        for (party, module), start in zip(bottoms.items(), starts[:-1].tolist(), strict=True):
            block = (0, widths[party]) if merge == "sum" else (start, total)
            piece = OwnPart(f"{name}/{party}", module, **rule)
            made[party] = Bottom(piece, reads[party], batches, widths[party], block, letters, nopeek, observer)
        keeps, watched = f"{name}/kept", (privacy, defence, observer)
        piece, widths_of, between = OwnPart(f"{name}/top", top, **rule), tuple(widths.values()), None
        if middle is None:
            held = Top(piece, target, batches, merge, widths_of, made.get(seat), letters, keeps, *watched)
        else:
            if middle_at in bottoms or middle_at not in (*schemas, HUB) or middle_at == seat:
                raise SettingsInvalid(
                    f"the middle lies at {middle_at!r}.", remedy="It is the hub's, or a party's that has no other part."
                )
            joint = torch.zeros((TRIED, sum(widths_of) if merge == "concat" else widths_of[0]))
            output = tried("the middle", middle, joint).shape[1]
            part = OwnPart(f"{name}/middle", middle, **rule)
            between = Middle(part, middle_at, merge, widths_of, output, letters, f"{name}/between")
            held = Top(piece, target, batches, "sum", (output,), None, letters, keeps, *watched)
        found = cls(seat, made, held, schemas, between)
        found.try_top()
        return found

    def try_top(self) -> None:
        """Try the label holder's part on made-up outputs.

        Raises
        ------
        ModelInvalid (HR-510)
        """
        width = sum(self.top.widths) if self.top.merge == "concat" else self.top.widths[0]
        output = tried("the label holder", self.top.piece.module, torch.zeros((TRIED, width)))
        n_classes = self.top.label.n_classes if self.top.label.loss == "cross_entropy" else 1
        if tuple(output.shape) not in {(TRIED, n_classes), (TRIED,)[: 2 - (n_classes > 1)]}:
            raise ModelInvalid(
                f"the top turns {TRIED} records into outputs of shape {tuple(output.shape)}; {self.top.label.column!r} needs "
                f"{(TRIED, n_classes)}.",
                remedy="Give its last layer one output for each level of a category, and a single one otherwise.",
            )


def holder_of(schemas: Mapping[str, Schema], label: str) -> tuple[str, str]:
    """Party and column of a label that is written as `party.column`, or as a column that one party alone has.

    Raises
    ------
    MissingColumn (HR-403), SettingsInvalid (HR-511)
    """
    party, dot, column = label.partition(".")
    if dot and party in schemas and column in schemas[party].names:
        return party, column
    found = [party for party, schema in schemas.items() if label in schema.names]
    if not found:
        every = [f"{party}.{name}" for party, schema in schemas.items() for name in schema.names]
        raise MissingColumn(f"no party has a column {label!r}.", remedy=suggestion(label, every))
    if len(found) > 1:
        raise SettingsInvalid(f"{', '.join(found)} have a column {label!r}.", remedy=f"Say whose: {found[0]}.{label}.")
    return found[0], label


def optimiser_of(given: Any) -> str:
    """The name of a class of `torch.optim`.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    try:
        name = name_of(given)
    except ValueError as error:
        raise SettingsInvalid(f"optimiser is {given!r}.", remedy=f"{error}.") from error
    if name not in NAMES:
        raise SettingsInvalid(f"no optimiser {name!r}.", remedy=suggestion(str(name), NAMES))
    return str(name)


def scale_of(module: nn.Module, scale: SplitScale) -> SplitScale:
    """The scale for a module: integers stay as they are where it embeds tokens."""
    return scale_for(module, scale) if scale != "symmetric" else scale


def made_up(schema: Schema, features: OwnFeatures) -> Tensor:
    """A module's input of made-up records."""
    columns = schema.synthetic(TRIED, np.random.default_rng(0))
    return features.taken({name: columns[name] for name in features.names}, TRIED, torch.float32)


def tried(who: str, module: nn.Module, inputs: Tensor) -> Tensor:
    """The outputs of a module for made-up records.

    Raises
    ------
    ModelInvalid (HR-510)
        It fails, or returns no matrix.
    """
    try:
        with torch.no_grad():
            output = copy.deepcopy(module).float().eval()(inputs)
    except Exception as error:  # whatever a foreign module raises
        raise ModelInvalid(
            f"the part of {who} does not accept records of shape {tuple(inputs.shape[1:])}: {error}",
            remedy="Its input is the party's features, joined; a single array-shaped column keeps its shape.",
        ) from error
    if not isinstance(output, Tensor) or output.ndim > 2 or len(output) != len(inputs) or not output.ndim:
        what = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ModelInvalid(f"the part of {who} returns {what} for {len(inputs)} records.", remedy="End it with nn.Flatten().")
    return output
