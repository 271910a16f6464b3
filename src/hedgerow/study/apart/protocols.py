"""From `[alignment]` to the protocol that carries it out."""

from __future__ import annotations

from typing import Any

from .sections import AlignmentSection

SHARED = ("least", "most", "ratio", "normal", "small_domain")


def protocol_of(section: AlignmentSection) -> Any:
    """The settings of a protocol, the same at all parties.

    Raises
    ------
    SettingsInvalid (HR-511)
        A number is out of its bounds.
    MissingExtra (HR-105)
        The protocol needs a package that is not installed.
    """
    given = {name: getattr(section, name) for name in SHARED}
    if section.by == "kkrt":
        from hedgerow.crypto.psi.kkrt import KKRT

        return KKRT(**given)
    from hedgerow.crypto.psi import X25519

    return X25519(**given, topology=section.topology)
