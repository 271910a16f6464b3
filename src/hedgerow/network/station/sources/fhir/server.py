"""Searches of a FHIR server, page by page.

Only the server that is named is asked: a `next` link to another scheme, host or port is refused, and so are redirections, so
that the token is never shown to others. Pages, bytes and seconds are limited. Without TLS only this machine itself is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from hedgerow.errors import ConfigInvalid, MissingExtra, SourceUnreadable

from ..secrets import address, hushed, variable
from .mapping import Coded, Meaning, Presence, Quantity
from .resources import READ, FhirEntry, entries_of, parse
from .values import Malformed, Resource, listed, mapped

if TYPE_CHECKING:
    from ...data_section import DataSection

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MEDIA = "application/fhir+json"


def search(section: DataSection, columns: Iterable[Meaning], transport: Any = None) -> Iterator[FhirEntry]:
    """Return the resources that the searches of `[data]` find.

    Raises
    ------
    ConfigInvalid (HR-601)
        The url is not https, or a search is not of patients, observations or conditions.
    SourceUnreadable (HR-614)
        The server cannot be reached, refuses, sends too much, or leads elsewhere.
    MissingExtra (HR-105)
        httpx is not installed.
    """
    try:
        import httpx
    except ImportError:
        raise MissingExtra("a FHIR server needs httpx.", remedy="pip install 'hedgerow[network]'") from None
    base = _base(address(section))
    searches = _checked(section.searches) or searches_for(columns)
    token = variable(section.token_env, "data.token_env").strip() if section.token_env else None
    try:
        headers = {"Accept": MEDIA} | ({"Authorization": f"Bearer {token}"} if token else {})
        with httpx.Client(
            headers=headers, timeout=section.seconds, follow_redirects=False, transport=transport, trust_env=transport is None
        ) as client:
            pages = Pages(client, section, base)
            for query in searches:
                yield from pages.of(query)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as cause:
        raise SourceUnreadable(
            f"the FHIR server cannot be asked: {type(cause).__name__}: {hushed(cause, [token])}.",
            remedy="Check data.url, the network and certificates from this machine.",
        ) from None


def searches_for(columns: Iterable[Meaning]) -> tuple[str, ...]:
    """Return the searches that the columns need: all patients, and what is coded as they say."""
    columns = list(columns)
    observed = sorted({code for column in columns if isinstance(column, Quantity | Coded) for code in column.codes})
    stated = sorted({code for column in columns if isinstance(column, Presence) for code in column.codes})
    found = ["Patient"]
    if observed:
        found.append(f"Observation?combo-code={quote(','.join(map(_escaped, observed)), safe='')}")
    if stated:
        found.append(f"Condition?code={quote(','.join(map(_escaped, stated)), safe='')}")
    return tuple(found)


class Pages:
    """The pages of one server's answers, under one limit of bytes."""

    def __init__(self, client: Any, section: DataSection, base: str) -> None:
        self._client, self._section, self._base = client, section, base
        self._left = section.megabytes * 1_000_000

    def of(self, query: str) -> Iterator[FhirEntry]:
        """Return the resources of one search."""
        url: str | None = f"{self._base}{query}" + (
            "" if "_count=" in query else f"{'&' if '?' in query else '?'}_count={self._section.page_size}"
        )
        place, seen = f"the answer to {query.partition('?')[0]}", set[str]()
        while url is not None:
            if url in seen or len(seen) == self._section.pages:
                raise SourceUnreadable(
                    f"{place} has more than {len(seen)} pages, or goes round in circles.",
                    remedy="Narrow the search, or raise data.pages.",
                )
            seen.add(url)
            bundle = self._page(url, place)
            yield from self._entries(bundle, place)
            url = self._next(bundle, url, place)

    def _page(self, url: str, place: str) -> Resource:
        with self._client.stream("GET", url) as response:
            if response.status_code != 200:
                raise SourceUnreadable(
                    f"{place} is status {response.status_code}.",
                    remedy="Check data.url, and that the token is valid and may read what is searched.",
                )
            parts: list[bytes] = []
            for part in response.iter_bytes():
                self._left -= len(part)
                if self._left < 0:
                    raise SourceUnreadable(
                        f"the FHIR server sends more than {self._section.megabytes} megabytes.",
                        remedy="Narrow the searches, or raise data.megabytes.",
                    )
                parts.append(part)
        found = parse(b"".join(parts), place)
        if not isinstance(found, dict) or (found.get("resourceType"), found.get("type")) != ("Bundle", "searchset"):
            raise SourceUnreadable(
                f"{place} is no bundle of results.", remedy="Check that data.url is the base of a FHIR R4 server."
            )
        return found

    def _entries(self, bundle: Resource, place: str) -> Iterator[FhirEntry]:
        for entry in entries_of(bundle, place):
            yield entry if entry.url else FhirEntry(entry.resource, f"{self._base}{entry.tail}" if entry.tail else None)

    def _next(self, bundle: Resource, url: str, place: str) -> str | None:
        try:
            links = [mapped(link) for link in listed(bundle.get("link"))]
        except Malformed:
            links = []
        found = next((link.get("url") for link in links if link.get("relation") == "next"), None)
        if found is None:
            return None
        following = urljoin(url, str(found))
        if origin(following) != origin(self._base) or "@" in urlsplit(following).netloc:
            raise SourceUnreadable(
                f"{place} goes on at another server.",
                remedy="Only data.url is asked. If the server is behind a proxy, set its public base there.",
            )
        return following


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address; of one that cannot be read, one that equals no other."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return "", url, -1


def _base(url: str) -> str:
    scheme, host, _ = origin(url)
    if scheme not in ("http", "https") or not host or (scheme == "http" and host not in LOOPBACK) or "?" in url or "#" in url:
        raise ConfigInvalid(
            "the url of the FHIR server is not the https address of its base.",
            remedy="Give one such as https://fhir.hospital.example/r4. Plain http is for this machine only.",
        )
    return url.rstrip("/") + "/"


def _checked(searches: tuple[str, ...]) -> tuple[str, ...]:
    for query in searches:
        if query.partition("?")[0] not in READ or "#" in query:
            raise ConfigInvalid(
                f"data.searches has {query!r}.", remedy=f"Search {', '.join(READ)}, such as Patient?active=true."
            )
    return searches


def _escaped(code: str) -> str:
    """A code as a search parameter: commas and dollars are escaped."""
    return code.replace("\\", "\\\\").replace(",", "\\,").replace("$", "\\$")
