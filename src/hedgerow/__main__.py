"""`python -m hedgerow` is the `hedgerow` command."""

from hedgerow.cli.main import main

main()
