"""The whole tree of errors, by part; everything is importable from here.

Two roots: what we were given is wrong, and what we could not see or do.  See `migrate.errors.base`.
"""

from migrate.errors.base import *
from migrate.errors.bundles import *
from migrate.errors.control import *
from migrate.errors.hosts import *
from migrate.errors.java import *
from migrate.errors.kafka import *
from migrate.errors.lab import *
from migrate.errors.metadata import *
from migrate.errors.playbook import *
from migrate.errors.runs import *
from migrate.errors.zookeeper import *
