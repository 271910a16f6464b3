"""The wire: what crosses between a server and parties in other processes, as bytes without code."""
