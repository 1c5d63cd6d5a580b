"""Nothing here asserts a time: a busy machine may be slow."""

from hypothesis import settings

settings.register_profile("report", deadline=None)
settings.load_profile("report")
