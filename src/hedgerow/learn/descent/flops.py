"""Floating-point operations of a computation, by PyTorch's own formulas of its products and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


def flops_of(computation: Callable[[], Any]) -> float:
    """Run a computation without gradients, and count: two for each multiplication and addition of a product.

    `FlopCounterMode` of PyTorch counts the same, by layers, and imports PyTorch's compiler.
    """
    counter = _Counter()
    with counter:
        computation()
    return counter.total


class _Counter(TorchDispatchMode):
    """Adds up what PyTorch knows of each operation."""

    def __init__(self) -> None:
        from torch.utils.flop_counter import flop_registry

        super().__init__()
        self.known, self.total = flop_registry, 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch asks this; it would import its compiler, only to tell it not to compile what follows."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func._overloadpacket in self.known:
            self.total += self.known[func._overloadpacket](*args, **(kwargs or {}), out_val=made)
        return made
