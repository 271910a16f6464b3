"""Stations: a data owner's process, which holds data and guard, and answers or refuses."""
