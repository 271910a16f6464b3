"""`Ray`: parties spread over actors of a Ray cluster, for a simulation that has outgrown one machine.

    an actor for each shard        columns are put into the object store once, and read from there without a copy
    a round                        the broadcast is put once; every actor's answer comes back and is added here, in order

Ray carries our bytes with its own transport, which pickles. That is lawful inside one trusted cluster, and only there: whoever
reaches a Ray cluster can run code on it. So a cluster that does not ask for a token is not used. A cluster that this engine
starts on this machine gets a token of its own; to reach another one, set RAY_AUTH_MODE=token here and there, and give this
program the cluster's token. Nothing of a real federation belongs on such a cluster: stations are for that.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.engines.pipes import LARGE
from hedgerow.errors import MissingExtra, RailUnavailable

from .shard import Reply, Shards
from .sharded import Crew, Sharded

MODE, TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"


@dataclass
class Ray(Sharded):
    """Parties in actors of a Ray cluster.

    Parameters
    ----------
    shards : int
        Actors, each with `threads_each` processors.
    address : str, optional
        Of a cluster that runs, as Ray names it ("10.0.0.5:6379", "auto"); one of this machine is started by default.
    insecure : bool
        Use a cluster that asks for no token: whoever reaches it then can run code on it, and read what parties hold.

    Raises
    ------
    MissingExtra (HR-105)
        Ray is not installed.
    RailUnavailable (HR-612)
        With the first question: no cluster answers at this address, or it asks for no token.
    """

    address: str | None = None
    insecure: bool = False

    def _crew(self) -> Crew:
        return _Actors(self.shards, self.threads_each, self.address, insecure=self.insecure)


class Actor:
    """The process of a shard."""

    def __init__(self, threads: int, path: Sequence[str]) -> None:
        sys.path += [entry for entry in path if entry not in sys.path]
        self._shards = Shards(threads)

    def host(self, number: int, about: str, common: Mapping[str, Array], own: Mapping[str, Array]) -> int:
        """Take parties in; return this process's number."""
        self._shards.host(number, about, common, own)
        return os.getpid()

    def told(self, number: int, kind: str, own: bytes, *common: Any) -> tuple[str, Any]:
        """Do what the server's process asks."""
        how, made = self._shards.told(number, kind, [*(memoryview(body) for body in common), own])
        return how, np.frombuffer(made, np.uint8) if len(made) >= LARGE else bytes(made)

    def drop(self, number: int) -> None:
        """Forget parties."""
        self._shards.drop(number)


@dataclass
class _Parcels:
    """What a simulation's shards hold, in the object store."""

    common: Any
    each: Sequence[tuple[str, Any]]


class _Actors:
    """A crew of actors."""

    def __init__(self, shards: int, threads_each: int, address: str | None, *, insecure: bool) -> None:
        self.shards, self.threads_each, self.address, self.insecure = shards, threads_each, address, insecure
        self.ray: ModuleType = imported()
        self.processes: dict[int, int] = {}
        self._actors: dict[int, Any] = {}
        self._lives = dict.fromkeys(range(shards), 0)
        self._hosted: dict[int, _Parcels] = {}
        self._dropped: list[int] = []
        self._numbers, self._lock, self._closed = count(1), threading.RLock(), False
        self._end: Any = None

    def host(self, common: Mapping[str, Array], each: Sequence[tuple[str, Mapping[str, Array]]]) -> int:
        with self._lock:
            self._connect()
            put, number = self.ray.put, next(self._numbers)
            self._hosted[number] = _Parcels(put(dict(common)), [(about, put(dict(arrays))) for about, arrays in each])
            for k in range(len(each)):
                if k in self._actors:
                    self._give(k, number)
        return number

    def drop(self, number: int) -> None:
        self._dropped.append(number)  # done before the next question: this may be called at any moment

    def ready(self, shards: Collection[int]) -> Mapping[int, int]:
        with self._lock:
            self._connect()
            while self._dropped:
                number = self._dropped.pop()
                self._hosted.pop(number, None)
                for actor in self._actors.values():
                    actor.drop.remote(number)
            begun = [k for k in shards if k not in self._actors]
            made = self.ray.remote(num_cpus=self.threads_each, max_restarts=0)(Actor) if begun else None
            for k in begun:
                self._actors[k] = made.remote(self.threads_each, sys.path)  # type: ignore[union-attr]
                self._lives[k] += 1
            for k in begun:
                for number in self._hosted:
                    self._give(k, number)
            return {k: self._lives[k] for k in shards}

    def ask(self, number: int, kind: str, common: Sequence[bytes], own: Mapping[int, bytes]) -> Mapping[int, Reply]:
        with self._lock:
            bodies = [self.ray.put(np.frombuffer(body, np.uint8)) if len(body) >= LARGE else body for body in common]
            coming: dict[int, Any] = {}
            replies: dict[int, Reply] = {}
            for k, body in own.items():
                if k in self._actors:
                    coming[k] = self._actors[k].told.remote(number, kind, body, *bodies)
            try:
                for k in list(coming):
                    try:
                        how, made = self.ray.get(coming.pop(k))
                        replies[k] = (how, memoryview(made))
                    except self.ray.exceptions.RayTaskError:
                        raise
                    except self.ray.exceptions.RayError:
                        self._lose(k)
            finally:
                for k in coming:  # interrupted: nobody will read what these reply
                    self._lose(k)
        return replies

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for k in list(self._actors):
                self._lose(k)
            self._hosted.clear()
            if self._end is not None:
                self._end()

    def _connect(self) -> None:
        """Be connected to a cluster that asks for a token."""
        if self._closed:
            raise RailUnavailable("this Ray engine was closed.", remedy="Make a new Ray(...).")
        if self._end is not None:
            return
        if not self.ray.is_initialized():
            _begin(self.ray, self.address, self.shards * self.threads_each, insecure=self.insecure)
            _own.add(id(self.ray))
        if not (self.insecure or _asks_for_token()):
            raise RailUnavailable(
                "this program is connected to a Ray cluster without a token: whoever reaches the cluster can run code on it.",
                remedy="Set RAY_AUTH_MODE=token on the cluster and here, before ray.init(), or say Ray(insecure=True).",
            )
        _users.append(key := secrets.token_hex(8))
        self._end = weakref.finalize(self, _release, self.ray, key)
        self._end.atexit = False  # Ray ends by itself

    def _give(self, k: int, number: int) -> None:
        """Let a shard host its part of a simulation."""
        parcels = self._hosted[number]
        if k >= len(parcels.each) or k not in self._actors:
            return
        about, own = parcels.each[k]
        try:
            self.processes[k] = self.ray.get(self._actors[k].host.remote(number, about, parcels.common, own))
        except self.ray.exceptions.RayTaskError as error:
            raise RailUnavailable(f"shard {k + 1} cannot hold its parties.", remedy="Its process's log says why.") from error
        except self.ray.exceptions.RayError:
            self._lose(k)

    def _lose(self, k: int) -> None:
        actor = self._actors.pop(k, None)
        self.processes.pop(k, None)
        if actor is not None and self.ray.is_initialized():
            self.ray.kill(actor)


_users: list[str] = []
"""Crews that are connected; the last one leaves the cluster that this module has started."""

_own: set[int] = set()
"""Whether this module has called `ray.init`."""


def imported() -> ModuleType:
    """The package `ray`.

    Raises
    ------
    MissingExtra (HR-105)
        It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtra(
            f"the engine Ray needs the package ray ({error}).",
            remedy="pip install 'hedgerow[ray]', or use Processes(shards=2) on this machine.",
        ) from error
    found: ModuleType = ray
    return found


def _begin(ray: ModuleType, address: str | None, processors: int, *, insecure: bool) -> None:
    """Start a cluster on this machine, or connect to one."""
    quiet: dict[str, Any] = {"logging_level": "error", "configure_logging": True}
    try:
        if address is not None:
            if os.environ.get(MODE, "").lower() != "token" and not insecure:
                raise RailUnavailable(
                    f"the Ray cluster at {address} would be used without a token: whoever reaches it can run code on it.",
                    remedy="Set RAY_AUTH_MODE=token and the cluster's token before this program starts, or say "
                    "Ray(insecure=True).",
                )
            ray.init(address=address, **quiet)
            return
        if not insecure:
            os.environ[MODE] = "token"
            os.environ.setdefault(TOKEN, secrets.token_hex(32))
            _look_again()
        ray.init(num_cpus=processors, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RailUnavailable(
            f"no Ray cluster at {address or 'this machine'}: {type(error).__name__}.",
            remedy="Start one by `ray start --head`, or leave the address out.",
        ) from error


def _look_again() -> None:
    """Let Ray, which may have been imported long ago, read its settings again."""
    from ray._raylet import Config

    if hasattr(Config, "initialize"):
        Config.initialize("")


def _asks_for_token() -> bool:
    """Whether this process speaks to its cluster with a token."""
    try:
        from ray._raylet import AuthenticationMode, get_authentication_mode
    except ImportError:  # too old to know tokens
        return False
    return bool(get_authentication_mode() == AuthenticationMode.TOKEN)


def _release(ray: ModuleType, key: str) -> None:
    _users.remove(key)
    if not _users and id(ray) in _own:
        _own.discard(id(ray))
        ray.shutdown()
