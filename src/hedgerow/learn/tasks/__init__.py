"""What a module is trained for: which columns it reads, its loss and its metrics, of one's own or by name.

declared     Task, Input, Metric: what a program is told
losses       losses and metrics by name
packing      several columns in one row of numbers, and tensors made of it again
fitted       a task for one schema, as a model carries it
memory       what losses, metrics and modules keep from call to call, and copies without it
trial        what does not fit is refused on made-up records, before any party is asked
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.lazy import lazily

if TYPE_CHECKING:
    from .declared import Input, Metric, Task

__all__ = ["Input", "Metric", "Task"]

lazily(__name__)
