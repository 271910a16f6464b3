"""The rules in force: the guard that a station keeps to now, which changes with its file and with nothing else.

    station.toml is edited   within a second or two, or at the next letter after that, its [guard] is in force
    it has a mistake         the rules before stay in force; log, command and console say so
    another section changed  that is in force from the next start

A file counts when it has lain still for a moment: one that is half written may lack a rule. Each change is an entry of the
journal with the keys that changed, also one that was made while the station was stopped. What is in force is kept in the
database, so that whoever looks sees the rules that hold, and where the file differs.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import ConfigInvalid, HedgerowError

from .base import Base
from .config import StationConfig, parse_config, read_config
from .journal import StationEntry, StationJournal

log = logging.getLogger("hedgerow")

NAME = "rules"
"""Under which the database has the rules in force."""

STILL = 1.0
"""Seconds for which a file lies still before it counts."""

LOOKED = 0.5
"""Seconds between two looks at the file, however many letters come."""

OF_CHILDREN = ("guard.modules", "guard.randomness", "guard.programs", "guard.columns", "guard.limits.processes")
"""Keys after whose change an admitted study is made ready anew."""


@dataclass(frozen=True)
class Rules:
    """What a database says of the rules in force.

    Attributes
    ----------
    config : StationConfig
        With the guard in force.
    problem : str
        Why the file of now is not in force; "" where it can be read.
    """

    config: StationConfig
    problem: str = ""


def kept_rules(base: Base) -> Rules | None:
    """The rules that a station has in force, or had when it stopped; None where it has never started."""
    raw = base.found(NAME)
    if raw is None:
        return None
    found = json.loads(raw)
    try:
        return Rules(parse_config(found["config"], "what the station keeps of its rules"), found["problem"])
    except ConfigInvalid:  # another version wrote it
        return None


def kept_in(database: Path) -> Rules | None:
    """The same of a database that may not be there."""
    if not database.exists():
        return None
    base = Base(database)
    try:
        return kept_rules(base)
    finally:
        base.close()


def differing(before: StationConfig, after: StationConfig) -> list[str]:
    """Keys in which two configurations differ, as the file spells them."""
    one, other = (_flat(config.model_dump(mode="json", by_alias=True)) for config in (before, after))
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def notes_of(in_force: Rules | None, path: Path) -> list[str]:
    """What an owner is told where the file is not what holds."""
    if in_force is None:
        return []
    try:
        keys = differing(in_force.config, read_config(path)[0])
    except ConfigInvalid as error:
        reason = " ".join(f"{error.reason} {error.remedy}".split())
        return [f"station.toml cannot be read, and the rules below stay in force: {reason}"]
    guard, rest = ([key for key in keys if key.startswith("guard.") is mine] for mine in (True, False))
    said = "station.toml differs from the rules in force, which are those below, in"
    found = [f"{said} {', '.join(guard)}: it holds within seconds where the station runs, else from its start."] * bool(guard)
    return found + [f"station.toml was changed in {', '.join(rest)}: that holds from the next start."] * bool(rest)


class RulesFile:
    """A station's file, watched.

    Parameters
    ----------
    path : Path
        The file, or its folder.
    config : StationConfig
        As it was read when the station started.
    base, journal
        The station's.
    at : callable
        Universal time, as text, for the journal.
    clock : callable
        Seconds that never go back.
    """

    def __init__(
        self,
        path: Path,
        config: StationConfig,
        base: Base,
        journal: StationJournal,
        *,
        at: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path, self.config = path, config
        self._base, self._journal, self._at, self._clock = base, journal, at, clock
        self._problem = ""
        self._seen: Any = None
        self._since, self._looked, self._taken = 0.0, -LOOKED, False
        before = kept_rules(base)
        changed = [] if before is None else _of_guard(differing(before.config, config))
        if changed and before is not None:
            self._write(before.config, config, changed, "while the station was stopped: ")
        self._keep()

    def look(self) -> list[str]:
        """Take over what the file says of the guard; returns the keys that changed, none as a rule."""
        now = self._clock()
        if now - self._looked < LOOKED:
            return []
        self._looked = now
        mark = _mark(self.path)
        if mark != self._seen:
            self._seen, self._since, self._taken = mark, now, False
        if self._taken or now - self._since < STILL:
            return []
        self._taken = True
        try:
            found = read_config(self.path)[0]
        except HedgerowError as error:
            problem = " ".join(f"{error.reason} {error.remedy}".split())
            if problem != self._problem:
                log.error("station.toml is not in force, and the rules before it stay: %s", problem)
                self._problem = problem
                self._keep()
            return []
        changed = _of_guard(differing(self.config, found))
        if changed:
            after = self.config.model_copy(update={"guard": found.guard})
            self._write(self.config, after, changed)
            self.config = after
        if changed or self._problem:
            self._problem = ""
            self._keep()
        return changed

    def _write(self, before: StationConfig, after: StationConfig, changed: list[str], when: str = "") -> None:
        was, is_ = (_flat(config.model_dump(mode="json", by_alias=True)) for config in (before, after))
        said = [f"{key} {_short(was.get(key))} -> {_short(is_.get(key))}" for key in changed]
        self._journal.write(StationEntry(self._at(), "rules", "", 0, "changed", reason=when + "; ".join(said)))
        log.info("the rules in force have changed in %s%s", when, "; ".join(said))

    def _keep(self) -> None:
        config = self.config.model_dump(mode="json", by_alias=True, exclude_unset=True)
        self._base.keep(NAME, json.dumps({"config": config, "problem": self._problem}).encode())


def _mark(path: Path) -> Any:
    """By which a file that was changed is told from what it was."""
    try:
        about = (path / "station.toml" if path.is_dir() else path).stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino


def _of_guard(keys: list[str]) -> list[str]:
    return [key for key in keys if key == "guard" or key.startswith("guard.")]


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Values of a nested mapping by dotted keys."""
    if not isinstance(value, dict) or not value:
        return {name: value}
    found: dict[str, Any] = {}
    for key, part in value.items():
        found |= _flat(part, f"{name}.{key}" if name else key)
    return found


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
