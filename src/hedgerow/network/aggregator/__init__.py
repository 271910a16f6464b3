"""An aggregator: adds up shares of rows for one coordinator's studies, and never sees a row."""
