"""The whole tree of errors, by part; everything is importable from here.

Two roots: what we were given is wrong, and what we could not see or do.  See `migrate.errors.base`.
"""

from migrate.errors.base import *
from migrate.errors.cluster import *
from migrate.errors.hosts import *
from migrate.errors.runs import *
