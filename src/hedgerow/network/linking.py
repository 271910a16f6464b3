"""The end of a rail at whoever dials a coordinator: a station, or an aggregator."""

from __future__ import annotations

from pathlib import Path

from hedgerow.engines.rails.rail import Link
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.config import CoordinatorSection


def open_link(section: CoordinatorSection, name: str, folder: Path, keys: KeyFolder) -> Link:
    """This end of the rail to a coordinator.

    Parameters
    ----------
    section : CoordinatorSection
    name : str
        Who dials.
    folder : Path
        From which paths of the section are taken.

    Raises
    ------
    RailUnavailable (HR-612), MissingExtra (HR-105)
    """
    if section.rail == "grpc":
        from hedgerow.engines.rails.grpc_rail import GrpcLink

        dialled: Link = GrpcLink(str(section.address), keys.tls)
        return dialled
    assert section.path is not None
    path = folder / section.path
    if section.rail == "socket":
        from hedgerow.engines.rails.socket_rail import SocketLink

        local: Link = SocketLink(path, name)
        return local
    from hedgerow.engines.rails.socket_rail import SocketDoor

    door: Link = SocketDoor(path, name)  # the relay of NVFlare runs beside it, and comes to it
    return door
