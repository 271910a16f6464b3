"""What a closed handle is not: something to be copied, to leave its process, or to be read as a table."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from hedgerow.errors import RecordsElsewhere


class Closed:
    """A handle that stands for what stays elsewhere."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a federation does not leave its process; a study file describes it.")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RecordsElsewhere(
            "a federation was given where records are needed, and its records stay at the parties.",
            remedy="Give new records, in a frame or an array. To scale columns, fit by stats.standardise(federation), or by a\n"
            "transformer that was fitted to public records; to cross-validate, stats.cross_validated(federation, ...);\n"
            "to measure a fit on the parties, its score(federation), stats.roc or learn.evaluate.",
        )
