"""C. van Aarle, Analysing data isolated in personal data stores, 2021."""
