"""A program under test: its case as a study, made ready on any engine, and its states as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from hedgerow.core.declaration import Case, Declaration
from hedgerow.errors import HedgerowWarning
from hedgerow.store.checkpoint import split
from hedgerow.study.build import Built, build
from hedgerow.study.study import Study, parse


@dataclass(frozen=True)
class Subject:
    """A program under test."""

    declaration: Declaration

    @cached_property
    def case(self) -> Case:
        """Its case, made once."""
        assert self.declaration.case is not None
        return self.declaration.case()

    def study(self, **sections: Any) -> Study:
        """The case as a study file has it."""
        study = {
            "name": self.declaration.name,
            "data": {"name": "case"},
            "partition": {"by": "iid", "parties": self.case.parties},
            "program": {"name": self.declaration.name, **self.case.settings},
            "protection": {"disclosure": math.inf, **self.case.protection},  # a case is small
            "evaluation": {"on": "none"},
            "baselines": False,
        }
        return parse(study | sections)

    def built(self, engine: Any = None, study: Study | None = None) -> Built:
        """The study made ready, its parties hosted by an engine."""
        with quiet():
            return build(study or self.study(), table=self.case.table, engine=engine)

    def states(self, built: Built) -> Iterator[Any]:
        """Run the program."""
        with quiet():
            yield from built.listing.program(built.settings)(built.federation)

    def last(self, engine: Any) -> Any:
        """The last state on an engine."""
        *_, state = self.states(self.built(engine))
        return state


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what a careful reader would want to know of a case: it is small."""
    with catch_warnings():
        simplefilter("ignore", HedgerowWarning)
        yield


def numbers(state: Any) -> dict[str, np.ndarray]:
    """Everything numeric in a state."""
    arrays, plain = split(state)
    kept = {key: value for key, value in plain.items() if isinstance(value, (bool, int, float))}
    return {key: np.asarray(value, float) for key, value in (arrays | kept).items()}


def assert_same(one: Any, other: Any) -> None:
    """Two states are the same to the last bit."""
    one, other = numbers(one), numbers(other)
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_array_equal(value, other[key], err_msg=key)
