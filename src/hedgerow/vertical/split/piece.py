"""Pieces: parts of a network that parties keep, with their optimisers, as arrays in their states.

    opened    module with the weights that the party keeps
    stepped   one step of the optimiser along gradients that are at hand; weights and what the optimiser remembers are kept

A piece's weights are told once, when training begins, and never leave the party after that. Arrays have the bits that a module
and an optimiser of PyTorch would have kept alive: split training is that of the whole network to the bit.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.core.party import Party
from hedgerow.core.question import travels
from hedgerow.crypto.context import description_digest
from hedgerow.errors import ModelInvalid, StateLost
from hedgerow.learn.descent.optimisers import NAMES
from hedgerow.learn.made import Made, made_of, structure
from hedgerow.learn.models import draws, own_generator

Precision = Literal["float32", "float64"]
"""In which a network is trained."""

TOLD = ("name", "optimiser", "learning_rate", "settings", "precision")
"""What a party is told of a piece, beside how its module was made."""


@travels
@dataclass(frozen=True, eq=False)
class OwnPart:
    """A part of a network at one party.

    Parameters
    ----------
    name : str
        Under which the party keeps it.
    module : torch.nn.Module
        Architecture and initial weights.
    optimiser : str
        A class of `torch.optim`; see `hedgerow.learn.descent.optimisers.NAMES`.
    learning_rate : float
    settings : tuple of (str, value)
        Of the optimiser.
    precision : {"float32", "float64"}
    """

    name: str
    module: nn.Module
    optimiser: str = "SGD"
    learning_rate: float = 0.1
    settings: tuple[tuple[str, Any], ...] = ()
    precision: Precision = "float32"

    def __travel__(self) -> dict[str, Any]:
        """What crosses a wire: how the module was made, and the rest as it is."""
        return {name: getattr(self, name) for name in TOLD} | {"made": made_of(self.module)}

    @classmethod
    def __arrive__(cls, *, made: Made, **told: Any) -> OwnPart:
        """A piece whose module is made again; the weights come when training begins."""
        if set(told) != set(TOLD) or told["optimiser"] not in NAMES:
            raise ModelInvalid(
                "what arrived is no part of a network.", remedy="Both sides must run the same version of Hedgerow."
            )
        return cls(module=made.make(), **told)

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions: of what a party is told."""
        told = {"kind": "piece", "structure": structure(self.module)} | {name: getattr(self, name) for name in TOLD}
        return description_digest(told)

    @property
    def dtype(self) -> torch.dtype:
        """The type of its weights."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @cached_property
    def initial(self) -> dict[str, np.ndarray]:
        """Weights and buffers to begin with, by the names under which the party keeps them."""
        return {self._weight(name): _array(value, self.dtype) for name, value in self.module.state_dict().items()}

    @cached_property
    def random(self) -> bool:
        """Whether it draws random numbers while it trains, as dropout does."""
        return any(draws(part) for part in self.module.modules())

    def begin(self, weights: Mapping[str, np.ndarray], state: dict[str, Any]) -> None:
        """Keep initial weights, and forget what was kept under this name.

        Raises
        ------
        ModelInvalid (HR-510)
            They are not of this module.
        """
        own = {name: np.asarray(weights[name]) for name in self.initial if name in weights}
        if wrong := [name for name, like in self.initial.items() if name not in own or own[name].shape != like.shape]:
            raise ModelInvalid(f"weights for {wrong[0]!r} are missing, or of another shape.", remedy="Begin with the module's.")
        for name in [name for name in state if name.startswith(f"{self.name}/")]:
            del state[name]
        state |= {name: np.array(value, self.initial[name].dtype) for name, value in own.items()}

    def opened(self, state: Mapping[str, Any], *, trains: bool = True) -> nn.Module:
        """This thread's copy of the module, with the weights that a party keeps.

        Raises
        ------
        StateLost (HR-615)
            The party keeps none.
        """
        module, holds = self._of_this_thread, self._copies.holds
        with torch.no_grad():
            for name, value in self._copies.values.items():
                if (kept := state.get(self._weight(name))) is None:
                    raise StateLost(
                        f"the party keeps no {self._weight(name)!r}: training has not begun here, or its state is lost.",
                        remedy="Begin the training anew.",
                    )
                if holds.get(name) is not kept:
                    value.copy_(torch.from_numpy(np.asarray(kept)))
                    holds[name] = kept if isinstance(value, nn.Parameter) else None  # buffers change when it is applied
                value.grad = None
        return module if module.training is trains else module.train(trains)

    def stepped(self, module: nn.Module, state: dict[str, Any]) -> None:
        """Take the optimiser's step along the gradients of a module that was opened, and keep what came of it."""
        parameters = [value for value in module.parameters() if value.requires_grad]
        remembered: list[dict[str, np.ndarray]] = [{} for _ in parameters]
        for key in [key for key in state if key.startswith(f"{self.name}/optimiser/")]:
            _, i, what = key.rsplit("/", 2)
            remembered[int(i)][what] = state[key]
        if parameters:
            made: Any = getattr(torch.optim, self.optimiser)(parameters, lr=self.learning_rate, **dict(self.settings))
            for parameter, kept in zip(parameters, remembered, strict=True):
                if kept:
                    made.state[parameter] = {what: torch.from_numpy(value.copy()) for what, value in kept.items()}
            self._copies.holds.clear()  # until all is kept: a step that fails leaves weights that nobody keeps
            made.step()
            for i, parameter in enumerate(parameters):
                for what, value in made.state[parameter].items():
                    if isinstance(value, Tensor):
                        state[f"{self.name}/optimiser/{i}/{what}"] = value.detach().numpy()
        for name, value in self._copies.values.items():
            if value.requires_grad or not isinstance(value, nn.Parameter):
                state[self._weight(name)] = self._copies.holds[name] = _array(value)
                if not isinstance(value, nn.Parameter):
                    self._copies.holds[name] = None

    @contextmanager
    def randomness(self, state: dict[str, Any], rng: Any = None) -> Iterator[None]:
        """Let layers such as dropout draw from the party's stream; without one as the last time, which the party keeps."""
        if not self.random:
            yield
            return
        if rng is not None:
            state[f"{self.name}/drawn"] = np.asarray(rng.integers(2**62))
        with own_generator(np.random.default_rng(int(state[f"{self.name}/drawn"]))):
            yield

    def weights(self, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Weights and buffers by the module's own names."""
        return {name: np.array(state[self._weight(name)]) for name in self.module.state_dict()}

    def _weight(self, name: str) -> str:
        return f"{self.name}/weights/{name}"

    @cached_property
    def _copies(self) -> threading.local:
        return threading.local()

    @property
    def _of_this_thread(self) -> nn.Module:
        """A copy whose weights are written over, which threads must not share."""
        if not hasattr(self._copies, "module"):
            self._copies.module = copy.deepcopy(self.module).to(self.dtype)
            self._copies.values = dict(self._copies.module.state_dict(keep_vars=True))
            self._copies.holds = {}
        module: nn.Module = self._copies.module
        return module


def tensor(values: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Numbers as a tensor of its own, where torch lays tensors out, on which products may depend."""
    array = np.ascontiguousarray(values)
    return torch.empty(array.shape, dtype=dtype).copy_(torch.from_numpy(array if array.flags.writeable else array.copy()))


def keeps(party: Party, piece: OwnPart) -> bool:
    """Whether a party keeps weights of a piece."""
    return all(name in party.state for name in piece.initial)


def _array(value: Tensor, dtype: torch.dtype | None = None) -> np.ndarray:
    """A copy of a tensor; floating-point numbers in a type."""
    value = value.detach().to(dtype) if dtype is not None and value.is_floating_point() else value.detach()
    return value.cpu().numpy().copy()
