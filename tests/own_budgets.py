"""Programs that divide a budget of their own, found in the catalogue by their settings `epsilon`, `noise_at` and `least`."""

from dataclasses import fields
from functools import cache

import hedgerow as hr
from hedgerow.core.declaration import settings_of as parameters_of
from hedgerow.data import partitioner
from hedgerow.study import registry
from hedgerow.study.catalogue import PROGRAMS
from hedgerow.study.keys import settings_of

ROOMS = ("hedgerow.stats.private.", "hedgerow.trees.", "hedgerow.synth.", "hedgerow.learn.teachers.")
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def found():
    """Names of the programs of these rooms that divide a budget of their own."""
    for name, place in registry.own().items():
        if place.path.startswith(ROOMS):
            listing = PROGRAMS[name]
            if {"epsilon", "noise_at", "least"} <= {one.name for one in parameters_of(listing)} - listing.fixed.keys():
                yield name


NAMES = sorted(found())


@cache
def case_of(name):
    return PROGRAMS[name].case()


def federation(name, seed=3, parties=5):
    table = case_of(name).table
    return hr.simulate(table, partitioner("iid", parties=parties)(table, 0), seed=seed)


def result(name, federated, **more):
    """The last state of a program's own case, within the budget, as arrays and numbers."""
    listing = PROGRAMS[name]
    drawn = {"bootstrap": False} if any(one.name == "bootstrap" for one in parameters_of(listing)) else {}
    settings = settings_of(listing, {**case_of(name).settings, **drawn, **BUDGET, **more})
    state = hr.last(listing.program(settings)(federated))
    return {one.name: getattr(state, one.name) for one in fields(state)}
