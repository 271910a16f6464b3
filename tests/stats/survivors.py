"""Federations of two real studies of survival, at sites that anybody can make again."""

import numpy as np

import hedgerow as hr
from hedgerow.data import Column, Schema, Table

FORMULA = "time + death_event ~ age + anaemia + serum_creatinine"


def hearts(**more):
    """Heart failure: 299 patients at four sites, one after the other; `more` are columns to add or replace."""
    table = hr.data.load("heart_failure")
    i = np.arange(len(table))
    schema = Schema(
        (
            *table.schema,
            Column("site", "category", levels=("a", "b", "c", "d"), role="ignore"),
            Column("patient", "integer", low=0, high=400, role="ignore"),
            Column("weighing", "number", low=0, high=2, role="ignore"),
            Column("begun", "number", low=0, high=365, role="ignore"),
        )
    )
    columns = {name: table[name] for name in table.schema.names} | {
        "site": (i % 4).astype(np.int16),
        "patient": i % 4 * 100 + i // 12,
        "weighing": 0.5 + i % 5 / 4,
        "begun": np.where(i % 2 == 0, table["time"] // 3, 0),
    }
    return Table(schema.admit(columns | more), schema)


def sites(table=None, by="site", **settings):
    """A federation whose parties are the levels of a column."""
    return hr.simulate(hearts() if table is None else table, hr.data.by_column(by), seed=0, **settings)


def women():
    """GBSG2: 686 women; parties are grades of their tumours."""
    return hr.simulate(hr.data.load("gbsg2"), hr.data.by_column("tgrade"), seed=0)
