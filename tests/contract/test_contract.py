"""Every program of the catalogue keeps what programs promise, each on its own case; nobody lists them here."""

from hedgerow.testing import contract

test_contract = contract()
