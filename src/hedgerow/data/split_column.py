"""The column that splits parties, where a model reads it: it tells the model at which party a record is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from hedgerow.core.federation import Federation
from hedgerow.core.split_by import split_by
from hedgerow.errors import HedgerowWarning


def warn_of_split(federation: Federation, features: Sequence[str]) -> None:
    """Warn where the column that split parties is among the features that a model reads because nobody named others.

    Warns
    -----
    HedgerowWarning
        Within a party the column is constant, so that it is the party itself; parties that come later have no level.
    """
    if (column := split_by(federation)) is not None and column in features:
        warnings.warn(
            f"{column!r} splits the parties, and is a feature of the model too, which so learns who a party is. "
            f'Say role="ignore" for it, e.g. declared={{{column!r}: {{"role": "ignore"}}}}, or name features=[...], with '
            f"{column!r} among them if you want it.",
            HedgerowWarning,
            stacklevel=3,
        )
