import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.network.station.config import GuardSection
from hedgerow.study import load, parse

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, partition=hr.data.iid(parties=5), seed=0)


@hr.local(additive=True, stackable=True)
def total_radius(broadcast, party, rng):
    return (party.w * party["mean_radius"]).sum(-1)


def apart():
    """A clinic and a laboratory that know different things about the same patients, before they are aligned."""
    columns = {"clinic": ["mean_radius", "mean_texture"], "laboratory": ["mean_smoothness", "malignant"]}
    return hr.simulate(hr.data.columns_by_name(columns, on="patient")(table, seed=0), on="patient", seed=0)


def aligned():
    """The same, aligned."""
    return apart().align(on="patient", by=hr.vertical.X25519(least=10))


def guard(toml):
    """The guard of a station, as `[guard]` of its station.toml says."""
    return GuardSection(**tomllib.loads(toml))


def question(**about):
    """A question as a station receives it: the sum of a column over five parties, without noise."""
    from hedgerow.core.engine import Outbox
    from hedgerow.core.question import Question
    from hedgerow.wire.question import Received

    counted = about.pop("counted", {})
    asked = Question(**{"number": 1, "verb": "sum", "local": total_radius} | about)
    return Received(Outbox(("alpha",), asked, counted=counted, asked=5))


__all__ = [
    "Path",
    "aligned",
    "apart",
    "guard",
    "hospitals",
    "hr",
    "load",
    "np",
    "parse",
    "partial",
    "pd",
    "question",
    "table",
    "total_radius",
]
