"""Records that runs of one process share: runs of a comparison mostly differ in settings, and read the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedgerow.data import Table
from hedgerow.study.build import Built, build, records_of, used_columns, words_of
from hedgerow.study.study import Study

MOST_KEPT = 2
"""Sets of data that are kept at once; of a third one, the oldest makes room."""


class SharedRecords:
    """Makes studies ready, and reads data that several of them name once. No run changes the records it is given."""

    def __init__(self, data_dir: str | Path | None) -> None:
        self._data_dir = data_dir
        self._kept: dict[str, Table] = {}

    def build(self, study: Study, **more: Any) -> Built:
        """`hedgerow.study.build.build`, with records that were read before where they are the same."""
        named = study.data.model_dump(mode="json", exclude={"target", "weight", "features", "ranges", "clip"})
        read = (sorted(used_columns(study) or ()), words_of(study)) if study.data.path else None
        key = repr((named, read))
        if key not in self._kept:
            table = records_of(study, self._data_dir)
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = table
        return build(study, data_dir=self._data_dir, table=self._kept[key], **more)
