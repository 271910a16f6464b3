from hedgerow.errors import *  # noqa: F403
from hedgerow.errors import catalogue, suggestion  # noqa: F401
