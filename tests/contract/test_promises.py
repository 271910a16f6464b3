"""The contract finds what is broken: a package of careless programs, each with one mistake."""

import pytest

from hedgerow.errors import MissingExtra, ProgramInvalid, StudyInvalid
from hedgerow.study import PROGRAMS
from hedgerow.study.catalogue import listing
from hedgerow.testing import PROMISES, Subject
from scratch import installed

CARELESS = '''
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import hedgerow as hr


@dataclass(frozen=True)
class Seen:
    round: int
    n: float


def small():
    return hr.Case(hr.data.load("diabetes").select(["bmi", "sex"]).take(range(60)), {"column": "bmi"})


@hr.local(additive=True)
def right(broadcast, party, rng, *, column):
    return (party.w * (party[column] > 25)).sum(-1)


@hr.local(additive=True)
def counts_padding(broadcast, party, rng, *, column):
    return np.sum(party[column] > 25) * 1.0


@hr.local(additive=True)
def means(broadcast, party, rng, *, column):
    return (party.w * party[column]).sum() / party.n


def unmarked(broadcast, party, rng, *, column):
    return (party.w * (party[column] > 25)).sum(-1)


def ask(federation, local, column, start, radius=1.0):
    n = 0.0 if start is None else start.n
    for t in range(start.round if start else 0, 2):
        n = n + float(federation.sum(partial(local, column=column), bound=hr.linf(radius, "record")))
        yield Seen(t + 1, n)


@hr.program("Sound.", case=small)
def sound(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """Sound.

    Parameters
    ----------
    column : str
        Numbers.
    """
    return ask(federation, right, column, start)


@hr.program("Declares half of its bound.", case=small)
def half(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, right, column, start, radius=0.5)


@hr.program("Counts records that are not there.", case=small)
def padding(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, counts_padding, column, start)


@hr.program("Says that means add up.", case=small)
def pooled(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, means, column, start, radius=1e6)


@hr.program("Asks what no station would be asked.", case=small)
def stuck(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, unmarked, column, start)


@hr.program("Begins anew when it is continued.", case=small)
def forgetful(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, right, column, start and Seen(start.round, 0.0))


@hr.program(case=small)
def silent(federation, *, column, start=None):
    return ask(federation, right, column, start)


def bare(federation, *, column: str, start: Seen | None = None) -> Iterator[Seen]:
    """As `careless.programs.sound`."""
    return ask(federation, right, column, start)
'''
NAMES = ("sound", "half", "padding", "pooled", "stuck", "forgetful", "silent", "bare", "gone")
POINTS = {name: f"careless.programs:{name}" for name in NAMES} | {"nowhere": "careless.elsewhere:f", "moments": "careless.x:y"}


@pytest.fixture(scope="module")
def careless(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch, installed(site, "careless", {"programs": CARELESS}, POINTS, patch):
        yield


def kept(name, folder):
    """The promises that a program keeps, by name; those that it breaks with what was said."""
    subject, said = Subject(PROGRAMS[name]), {}
    for promise, test in PROMISES.items():
        place = folder / promise
        place.mkdir()
        try:
            test(subject, place)
        except Exception as error:
            said[promise] = str(error)
    return said


def test_a_sound_program_of_another_package_keeps_every_promise(careless, tmp_path):
    assert kept("sound", tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "promise", "words"),
    [
        ("half", "keeps_its_bounds", "moves the sum by 2 times"),
        ("padding", "counts_no_record_of_weight_zero", "counts_padding: a record of weight zero"),
        ("pooled", "is_the_same_on_every_engine", "Not equal to tolerance"),
        ("stuck", "travels_as_bytes", "not marked as something that may be asked"),
        ("forgetful", "resumes_from_every_state", "not equal"),
    ],
)
def test_a_mistake_is_found_by_its_promise(careless, tmp_path, name, promise, words):
    said = kept(name, tmp_path)
    assert promise in said, said
    assert words in said[promise]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("silent", ["a sentence", "Iterator\\[State\\]", "column: an annotation", "column: an entry under Parameters"]),
        ("bare", ["declares no program", "@hedgerow.program"]),
        ("gone", ["careless.programs has no 'gone'"]),
        ("nowhere", ["cannot be imported", "entry point"]),
    ],
)
def test_what_a_program_leaves_out_is_said_in_one_error(careless, name, words):
    for word in words:
        with pytest.raises(ProgramInvalid, match=word):
            listing(name)


def test_a_broken_package_does_not_hide_the_others(careless):
    sentences = PROGRAMS.sentences()
    assert sentences["sound"] == "Sound."
    assert "cannot be used" in sentences["gone"]
    assert sentences["moments"] == "Means and deviations of columns, by two sums."


def test_a_name_of_this_package_cannot_be_taken(careless):
    assert PROGRAMS["moments"].path == "hedgerow.stats.moments:centred_sums"


def test_two_packages_with_one_name_are_refused_where_it_is_used(careless, tmp_path):
    points = {"sound": "twin.programs:sound"}
    with pytest.MonkeyPatch.context() as patch, installed(tmp_path, "twin", {"programs": CARELESS}, points, patch):
        with pytest.raises(ProgramInvalid, match=r"two packages[\s\S]*careless[\s\S]*rename its entry point"):
            listing("sound")
        assert "half" in PROGRAMS


def test_an_unknown_name_is_refused_with_the_nearest(careless):
    with pytest.raises(StudyInvalid, match="Did you mean 'forgetful'"):
        listing("forgetfull")


def test_a_program_of_ours_whose_package_is_not_installed_names_the_extra(monkeypatch):
    from hedgerow.study import catalogue

    def missing(path, name):
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(catalogue, "declared", missing)
    catalogue._declaration.cache_clear()
    with pytest.raises(MissingExtra, match="hedgerow\\[all\\]"):
        listing("moments")
    catalogue._declaration.cache_clear()
