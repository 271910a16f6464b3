"""`python -m hedgerow.engines.rails.nvflare provision FOLDER --site alpha=/run/hedgerow/alpha.sock ...`."""

from __future__ import annotations

import sys

from hedgerow.engines.rails.nvflare.provision import main
from hedgerow.errors import HedgerowError

if __name__ == "__main__":
    try:
        main()
    except HedgerowError as error:
        sys.exit(str(error))
