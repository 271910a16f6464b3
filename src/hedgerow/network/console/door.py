"""Who may open the console page: whoever has the address that the station printed, from this machine.

    token     in that address, once; then a session's cookie stands for it (HttpOnly, SameSite=Strict)
    session   ends after some idle hours, and with the station; it has a form key of its own, without which nothing is changed
    host      a name that is not this machine's is refused, so that no page elsewhere reaches this one by a name of its own
    origin    a form comes from this page, or is refused

Nothing of this is kept on the disk.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

IDLE_SECONDS = 8 * 3600.0
"""After so long without a visit, a session has ended."""

SESSIONS = 16
"""Open at once; a new one closes the oldest."""

HOSTS = ("127.0.0.1", "localhost")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # "no-referrer" would make browsers hide the origin of forms, which is checked
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every answer."""


@dataclass(frozen=True)
class BrowserSession:
    """One browser that was let in."""

    cookie: str
    form_key: str
    seen: float


class Door:
    """Lets browsers in.

    Parameters
    ----------
    token : str
        What the printed address holds.
    now : callable
        Seconds on a clock that never goes back.
    """

    def __init__(self, token: str, now: Callable[[], float] = time.monotonic) -> None:
        self._token, self._now = token, now
        self._sessions: OrderedDict[str, BrowserSession] = OrderedDict()

    def enter(self, token: str) -> BrowserSession | None:
        """A new session, for the right token alone."""
        if not same(token, self._token):
            return None
        session = BrowserSession(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._now())
        self._sessions[session.cookie] = session
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def session(self, cookie: str, *, visit: bool = True) -> BrowserSession | None:
        """The session of a cookie, unless it has ended; a visit keeps it open."""
        found = self._sessions.get(cookie)
        if found is None:
            return None
        if self._now() - found.seen > IDLE_SECONDS:
            del self._sessions[cookie]
            return None
        if visit:
            self._sessions[cookie] = found = replace(found, seen=self._now())
        return found


def same(given: str, expected: str) -> bool:
    """Compare secrets in a time that tells nothing of them."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def is_here(host: str) -> bool:
    """Whether a Host header names this machine; any port does, so that a tunnel may end here."""
    name, _, port = host.rpartition(":") if ":" in host else (host, "", "80")
    return name in HOSTS and port.isascii() and port.isdigit()


def is_own(origin: str, host: str) -> bool:
    """Whether a form comes from the page that it is sent to."""
    found = urlsplit(origin)
    return found.scheme == "http" and found.netloc == host and bool(host)
