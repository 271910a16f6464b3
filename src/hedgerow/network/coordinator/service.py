"""The coordinator's process: opens its folder, lays its rail, and takes studies forward until it is told to stop.

One thread takes what comes over the rail and looks for what is due; each study that is taken a step further has a thread for
that step. When told to stop, every study ends its question, keeps its checkpoint, and goes on at the next start.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.rails.rail import Rail
from hedgerow.errors import CannotWrite, ConfigInvalid, KeyInvalid, RailUnavailable
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.store.locks import require_posix

from .config import CoordinatorConfig
from .coordinator import Coordinator
from .store import Store

log = logging.getLogger("hedgerow")

TICK = 0.25
"""Seconds between two looks at the store, where commands leave studies and wishes."""

AGAIN = 5.0
"""Seconds before a study is tried again whose step could not be kept, as on a full disk."""


def open_keys(config: CoordinatorConfig) -> KeyFolder:
    """Open the coordinator's keys.

    Raises
    ------
    KeyInvalid (HR-244)
        There are none, or others may read them.
    ConfigInvalid (HR-601)
        They are another's.
    """
    keys = KeyFolder(config.keys_folder)
    if keys.name != config.name or not keys.is_authority:
        whose = f"of {keys.name!r}" + ("" if keys.is_authority else ", who is no coordinator")
        raise ConfigInvalid(
            f"the keys in {config.keys_folder} are {whose}; the configuration is that of {config.name!r}.",
            remedy=f"hedgerow keys init {config.keys_folder} --name {config.name} --authority --host HOST",
        )
    return keys


def open_rail(config: CoordinatorConfig, keys: KeyFolder) -> Rail:
    """Lay the rail of a configuration.

    Raises
    ------
    RailUnavailable (HR-612), MissingExtra (HR-105)
    """
    section = config.rail
    if section.kind == "grpc":
        from hedgerow.engines.rails.grpc_rail import GrpcRail

        return GrpcRail(str(section.address), keys.tls, keys.admits)
    assert section.path is not None
    if section.kind == "socket":
        from hedgerow.engines.rails.socket_rail import SocketRail

        return SocketRail(config.at(section.path))
    from hedgerow.engines.rails.nvflare import NvflareRail

    assert section.kit is not None
    return NvflareRail(config.at(section.path), config.at(section.kit))


class Service:
    """A coordinator that runs.

    Parameters
    ----------
    config : CoordinatorConfig
    keys : KeyFolder
    store : Store
        Locked by the caller.
    rail : Rail
    """

    def __init__(self, config: CoordinatorConfig, keys: Any, store: Store, rail: Rail) -> None:
        self.config, self.store, self.rail = config, store, rail
        key_material, public_identities = readable(lambda: keys.key_material), readable(lambda: keys.public_identities)
        self.queue = MessageQueue(key_material, public_identities, rail, heads=store.heads(key_material))
        self.coordinator = Coordinator(store, self.queue, config, public_identities)
        self._steps: dict[str, Future[None]] = {}
        self._later: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Take studies forward until `stop` is set; then let every study end its question."""
        self.store.wake()
        n_threads = self.config.limits.studies_at_once
        with ThreadPoolExecutor(n_threads, thread_name_prefix="study") as pool:
            try:
                while not stop.is_set():
                    self._reap()
                    for id in self._startable(n_threads):
                        self._steps[id] = pool.submit(self.coordinator.advance, id)
                    self._listen(stop.is_set)
            finally:
                self.coordinator.stopping.set()
                while any(not step.done() for step in self._steps.values()):
                    self._listen()
                self._reap()

    def _listen(self, until: Callable[[], bool] = lambda: False) -> None:
        """Let events happen for a moment."""
        try:
            self.queue.wait(TICK, until)
        except RailUnavailable as error:
            log.warning("%s", error.reason)
            time.sleep(TICK)

    def _startable(self, n_threads: int) -> list[str]:
        try:
            due = self.coordinator.due()
        except (CannotWrite, RailUnavailable) as error:
            log.warning("%s", error.reason)
            return []
        now = self.store.now()
        ready = [id for id in due if id not in self._steps and self._later.get(id, 0.0) <= now]
        return ready[: max(0, n_threads - len(self._steps))]

    def _reap(self) -> None:
        """Take note of steps that are over; what could not be kept is tried again."""
        for id, step in list(self._steps.items()):
            if not step.done():
                continue
            del self._steps[id]
            self._later.pop(id, None)
            error = step.exception()
            if error is not None:
                self._later[id] = self.store.now() + AGAIN
                known = isinstance(error, CannotWrite | RailUnavailable)
                log.error("%s: %s", id, error if known else repr(error), exc_info=None)


def readable(look: Callable[[], Any]) -> Callable[[], Any]:
    """Look into the key folder: while that cannot be read nobody is trusted and studies wait, and none of them ends.

    Raises
    ------
    RailUnavailable (HR-612)
    """

    def looked() -> Any:
        try:
            return look()
        except KeyInvalid as error:
            raise RailUnavailable(f"nobody can be reached: {error.reason}", remedy=error.remedy) from error

    return looked


def serve(config: CoordinatorConfig, stop: threading.Event) -> None:
    """Run a coordinator until `stop` is set.

    Raises
    ------
    CannotWrite (HR-104)
        Another coordinator runs on this state.
    KeyInvalid (HR-244), RailUnavailable (HR-612), MissingExtra (HR-105), SystemUnsupported (HR-108)
    """
    require_posix("A coordinator")
    keys = open_keys(config)
    store = Store(config.state_folder)
    try:
        store.lock()
        rail = open_rail(config, keys)
        try:
            waiting = sum(not kept.ended for kept in store.studies())
            left = f"{waiting} {'study has' if waiting == 1 else 'studies have'} not ended"
            log.info("%s is there on %s; %s", config.name, where(config), left)
            Service(config, keys, store, rail).run(stop)
        finally:
            rail.close()
            log.info("%s stopped", config.name)
    finally:
        store.close()


def where(config: CoordinatorConfig) -> str:
    """The rail in a few words."""
    return f"{config.rail.kind} {config.rail.address or config.rail.path}"
