from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow import studies

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, partition=hr.data.iid(parties=5), seed=0)


@hr.local(additive=True, stackable=True)
def total_radius(broadcast, party, rng):
    return (party.w * party["mean_radius"]).sum(-1)


__all__ = ["Path", "hospitals", "hr", "np", "partial", "pd", "studies", "table", "total_radius"]
