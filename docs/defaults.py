"""A griffe extension: a default on a page of the reference is that of the signature, or none.

Of `epsilon : {"add-remove", "replace-one"}` griffe takes the first choice for the default, and of `family, penalty : ...` the
default of `family` for both.
"""

from __future__ import annotations

from typing import Any

from griffe import Docstring, DocstringSection, DocstringSectionParameters, Extension, Object


class OfTheSignature(Docstring):
    """A docstring whose parameters have the defaults of the signature."""

    def parse(self, *args: Any, **options: Any) -> list[DocstringSection]:
        """Parse, then put the defaults right."""
        sections = super().parse(*args, **options)
        known = {one.name.lstrip("*"): one for one in getattr(self.parent, "parameters", ())}
        for section in sections:
            for said in section.value if isinstance(section, DocstringSectionParameters) else ():
                given = known.get(said.name.lstrip("*"))
                said.value = None if given is None or given.kind.name.startswith("var_") else given.default
        return sections


class Defaults(Extension):
    """Puts `OfTheSignature` in the place of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Replace the docstring of an object."""
        if (said := obj.docstring) is not None:
            obj.docstring = OfTheSignature(
                said.value,
                lineno=said.lineno,
                endlineno=said.endlineno,
                parent=said.parent,
                parser=said.parser,
                parser_options=said.parser_options,
            )
