"""What `simulate` and `on` take as an engine."""

from __future__ import annotations

from typing import Any, Protocol

from hedgerow.core.party import Parties


class Hosting(Protocol):
    """The settings of an engine, which hosts parties: `InProcess`, `Loop`, `Processes`, `Ray`."""

    def hosting(self, held: Parties) -> Any:
        """Return an engine with these settings that holds some parties."""
        ...
