"""How ZooKeeper lets us in, in a file of its own: for commands that have no inventory yet."""

from __future__ import annotations

import os
from pathlib import Path

from migrate.model.inventory import ZookeeperLogin
from migrate.playbook.access import ZookeeperAccessSection, login_of, zookeeper_faults
from migrate.playbook.document import read_deciding
from migrate.playbook.problems import refuse, validate


def load_zookeeper_access(path: Path) -> ZookeeperLogin:
    """The login of a YAML file that holds what stands under an inventory's `zookeeper_access`.

    Paths in it are relative to the file.  Raises DocumentUnreadable, YamlRefused or DocumentInvalid, each with
    file:line:column.
    """
    document = read_deciding(path)
    section = validate(document, ZookeeperAccessSection)
    refuse(document, list(zookeeper_faults(section, ())))
    near = path.resolve().parent
    return login_of(section, lambda text: os.path.normpath(near / text))
