"""The programs that a study can name: those that declare themselves beside their code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from hedgerow.core.declaration import Declaration, declared
from hedgerow.errors import HedgerowError, MissingExtra, ProgramInvalid, StudyInvalid, suggestion

from . import registry

NEAR = 0.7
"""Share of its letters that a misspelt name has in common with the name that is suggested."""


class Catalogue(Mapping[str, Declaration]):
    """Programs by name. Names are known without an import; a program is imported when it is looked up.

    Parameters
    ----------
    apart : bool
        Those for parties that hold different columns of the same people; those of other packages are for parties of one schema.
    """

    def __init__(self, *, apart: bool = False) -> None:
        self.apart = apart

    def __iter__(self) -> Iterator[str]:
        own = [name for name, place in registry.own().items() if place.apart == self.apart]
        yield from dict.fromkeys((*own, *(name for name in registry.others() if not self.apart and name not in registry.own())))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in list(iter(self))

    def __getitem__(self, name: str) -> Declaration:
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
        return _declaration(name)

    def sentences(self) -> dict[str, str]:
        """What each program does, in one sentence; of a package that is broken, that it is."""
        said = {place.name: place.sentence for place in registry.own().values() if place.apart == self.apart}
        for name in self:
            if name in said:
                continue
            try:
                said.setdefault(name, self[name].sentence)
            except Exception as error:  # of somebody else's package, which may do anything when it is imported
                said[name] = f"cannot be used: {error}".partition("\n")[0]
        return {name: said[name] for name in self}


PROGRAMS = Catalogue()
"""Programs for parties that hold the same columns of different people."""

VERTICAL = Catalogue(apart=True)
"""Programs for parties that hold different columns of the same people."""


@cache
def _declaration(name: str) -> Declaration:
    """Import a program and return what it says of itself. Names of this package cannot be taken by another one."""
    ours = name in registry.own()
    places = [registry.own()[name]] if ours else list(registry.others()[name])
    if len(places) > 1:
        raise ProgramInvalid(
            f"two packages declare a program {name!r}: {' and '.join(place.path for place in places)}.",
            remedy="Uninstall one of them, or rename its entry point.",
        )
    try:
        return declared(places[0].path, name)
    except HedgerowError:
        raise
    except ImportError as error:
        remedy = "pip install 'hedgerow[all]'" if ours else "Mend the entry point, or install what its package needs."
        kind = MissingExtra if ours else ProgramInvalid
        raise kind(f"{places[0].path} cannot be imported: {error}.", remedy=remedy) from error
    except Exception as error:
        if ours:
            raise
        raise ProgramInvalid(
            f"{places[0].path} fails when it is imported: {type(error).__name__}: {error}.", remedy="Mend its package."
        ) from error


def listing(name: str) -> Declaration:
    """Return the declaration of a program, or refuse a name that is not in the catalogue."""
    if name in VERTICAL:
        return VERTICAL[name]
    if name not in PROGRAMS:
        near = get_close_matches(name, [*PROGRAMS, *VERTICAL], cutoff=NEAR)
        known = suggestion(name, near) if near else "`hedgerow studies` lists those that are installed here."
        elsewhere = f"A program of another package must be installed here, by an entry point of the group {registry.GROUP}."
        raise StudyInvalid(f"no program {name!r}.", remedy=f"{known}\n{elsewhere}")
    return PROGRAMS[name]
