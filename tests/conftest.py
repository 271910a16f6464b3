"""Settings that all tests share: machines are slow at times, so no example of a property has a deadline."""

from hypothesis import settings

settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")
