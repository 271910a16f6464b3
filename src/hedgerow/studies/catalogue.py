"""The programs that a study can name: those that declare themselves beside their code."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cache

from hedgerow.core.declaration import Declaration, declared
from hedgerow.errors import MissingExtra, ProgramInvalid, StudyInvalid, suggestion

from . import found
from .listing import Listing

LISTED: dict[str, Listing] = {}
"""Programs that were listed while the package runs."""


class Catalogue(MutableMapping[str, Listing]):
    """Programs by name. Names are known without an import; a program is imported when it is looked up."""

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*LISTED, *found.own(), *found.others()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in LISTED or name in found.own() or name in found.others()

    def __getitem__(self, name: str) -> Listing:
        """Import a program.

        Raises
        ------
        KeyError
            Of a name that is not in the catalogue; see `listing`.
        ProgramInvalid (HR-106)
            The program leaves out what it must say of itself, or two packages declare one name.
        MissingExtra (HR-105)
            It needs a package that is not installed.
        """
        return LISTED[name] if name in LISTED else Listing.of(declaration(name))

    def __setitem__(self, name: str, listing: Listing) -> None:
        LISTED[name] = listing

    def __delitem__(self, name: str) -> None:
        del LISTED[name]

    def sentences(self) -> dict[str, str]:
        """What each program does, in one sentence; of a package that is broken, that it is."""
        said = {name: one.sentence for name, one in LISTED.items()} | {one.name: one.sentence for one in found.own().values()}
        for name in found.others():
            try:
                said.setdefault(name, self[name].sentence)
            except Exception as error:  # of somebody else's package, which may do anything when it is imported
                said[name] = f"cannot be used: {error}".partition("\n")[0]
        return {name: said[name] for name in self}


PROGRAMS = Catalogue()


@cache
def declaration(name: str) -> Declaration:
    """Import a program and return what it says of itself. Names of this package cannot be taken by another one."""
    ours = name in found.own()
    places = [found.own()[name]] if ours else list(found.others()[name])
    if len(places) > 1:
        raise ProgramInvalid(
            f"two packages declare a program {name!r}: {' and '.join(place.path for place in places)}.",
            remedy="Uninstall one of them, or rename its entry point.",
        )
    try:
        return declared(places[0].path, name)
    except ImportError as error:
        if ours:
            remedy = "pip install 'hedgerow[all]'"
            raise MissingExtra(f"{places[0].path} needs a package that is not installed: {error}.", remedy=remedy) from error
        raise ProgramInvalid(
            f"the program {name!r} is to be {places[0].path}, which cannot be imported: {error}.",
            remedy="Mend the entry point, or install what the package needs.",
        ) from error


def listing(name: str) -> Listing:
    """Return the listing of a program, or refuse a name that is not in the catalogue."""
    if name not in PROGRAMS:
        raise StudyInvalid(f"no program {name!r}.", remedy=suggestion(name, PROGRAMS))
    return PROGRAMS[name]
