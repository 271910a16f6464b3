"""`python -m hedgerow` is the `hedgerow` command."""

from hedgerow.cli.start import main

main()
