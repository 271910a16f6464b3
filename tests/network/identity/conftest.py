"""Key folders of a coordinator and two stations."""

import pytest

from hedgerow.network.identity.key_folder import KeyFolder


@pytest.fixture
def hub(tmp_path):
    return KeyFolder.make(tmp_path / "hub" / "keys", "hub", authority=True, hosts=["hub.example.org", "127.0.0.1"])


@pytest.fixture
def alpha(tmp_path):
    return KeyFolder.make(tmp_path / "alpha" / "keys", "alpha")


@pytest.fixture
def beta(tmp_path):
    return KeyFolder.make(tmp_path / "beta" / "keys", "beta")
