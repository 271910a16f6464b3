"""Haug 2022 and the PriMIA study of Kaissis et al. 2021 that it repeats."""
