"""Rows in a CSV file, which any spreadsheet opens."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.errors import CannotWrite


class CSV:
    """Writes a line for each round; whole after every round, also where metrics come that were not measured before.

    Epsilon stands in the rounds for which it was computed, the last one among them, and is blank in others: the tightest
    accountant takes a moment, and at most a tenth of a run's time. It never falls, so a blank is at most the next number below.

    Parameters
    ----------
    path : str or Path
        Its folder is made where it is missing. A run that is resumed continues the file: lines of earlier rounds stay, those
        of the rounds that are run again are replaced.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._rows: list[dict[str, Any]] | None = None
        self._names: list[str] = []

    def log(self, row: Mapping[str, Any]) -> None:
        """Write a round."""
        try:
            if self._rows is None:
                self._rows = [old for old in self._read() if float(old["round"]) < row["round"]]
                self._names = list(dict.fromkeys(name for old in self._rows for name in old))
                self._write_all()
            self._rows.append(dict(row))
            new = [name for name in row if name not in self._names]
            if new:
                self._names += new
                self._write_all()
            else:
                with self.path.open("a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, self._names).writerow(row)
        except OSError as error:
            raise CannotWrite(
                f"{self.path}: {error.strerror}.", remedy="Make room, or name another file.", says=False
            ) from error

    def amend(self, row: Mapping[str, Any]) -> None:
        """Write the last round again, of which more is known at the end of a run: its epsilon."""
        if self._rows and self._rows[-1].get("round") == row["round"] and dict(row) != self._rows[-1]:
            self._rows.pop()
            self._names += [name for name in row if name not in self._names]
            self._rows.append(dict(row))
            self._write_all()

    def close(self) -> None:
        """Nothing is open between rounds."""

    def _read(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return []
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if any(not row.get("round") for row in rows):
            raise CannotWrite(f"{self.path} holds something else than rounds.", remedy="Name another file.", says=False)
        return rows

    def _write_all(self) -> None:
        with self.path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._names)
            if self._names:
                writer.writeheader()
                writer.writerows(self._rows or [])
