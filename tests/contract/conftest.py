"""What trains takes longer: those items are slow, whoever adds a program."""

from pathlib import Path

import pytest

from hedgerow.study.registry import own

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    places = own()
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("name")
        if (
            item.path.parent == HERE
            and name in places
            and places[name].path.startswith(("hedgerow.learn.", "hedgerow.papers.", "hedgerow.synth.gan."))
        ):
            item.add_marker(pytest.mark.slow)
