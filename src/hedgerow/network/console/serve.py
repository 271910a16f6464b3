"""Serves the console page beside a station: on the loopback, in a thread, until the station stops."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hedgerow.errors import ConfigInvalid, MissingExtra
from hedgerow.network.station.review import Review

from .contact import Contact
from .door import Door

log = logging.getLogger("hedgerow")

HOST = "127.0.0.1"
ADDRESS = Path("state") / "console"
"""File of a station's folder that holds the page's address while it is served; its owner alone can read it."""


@contextmanager
def serving(inbox: Review, line: Contact, port: int, *, records: int | None = None) -> Iterator[str]:
    """Serve the console meanwhile, and give its address with the token.

    Parameters
    ----------
    port : int
        Of the loopback; a free one if zero.

    Raises
    ------
    MissingExtra (HR-105)
        FastAPI or uvicorn is not installed.
    ConfigInvalid (HR-601)
        The port is taken.
    """
    try:
        import uvicorn

        from .app import application
    except ImportError as error:
        raise MissingExtra(
            f"the console page needs FastAPI and uvicorn, and {error.name} is not installed.",
            remedy="pip install 'hedgerow[network]', or leave [console] out of station.toml",
        ) from error
    token = secrets.token_urlsafe(32)
    listener = _listen(port)
    server = uvicorn.Server(
        uvicorn.Config(
            application(inbox, Door(token), line, records),
            log_config=None,
            access_log=False,  # the token is in an address
            lifespan="off",
            ws="none",
            http="h11",
            server_header=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="hedgerow-console", daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://{HOST}:{listener.getsockname()[1]}/?token={token}"
    finally:
        server.should_exit = True
        thread.join(5.0)
        listener.close()


@contextmanager
def address_file(address: str, folder: Path) -> Iterator[None]:
    """Tell the owner the address: on a terminal, and in a file; in no log, which others may read."""
    path = folder / ADDRESS
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(address + "\n")
    log.info("the console is at %s; its key is in %s", address.partition("?")[0], path)
    if sys.stdout.isatty():
        print(f"\n  console  {address}\n", flush=True)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(64)
    except OSError as problem:
        listener.close()
        raise ConfigInvalid(
            f"console.port is {port}, and nothing can listen there: {problem.strerror}.",
            remedy="Take another port, or 0 for a free one.",
            asked=False,
        ) from problem
    return listener
