"""Rows as scalars of TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.errors import MissingExtra


class TensorBoard:
    """Writes a scalar for each number of a row, by round; `tensorboard --logdir FOLDER` shows them.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    MissingExtra (HR-105)
        TensorBoard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("TensorBoard is not installed.", remedy="pip install 'hedgerow[loggers]'") from error
        self.folder = Path(folder)
        self._writer = SummaryWriter(str(self.folder))

    def log(self, row: Mapping[str, Any]) -> None:
        """Write a round."""
        for name, value in row.items():
            if name != "round":
                self._writer.add_scalar(name, value, row["round"])
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()
