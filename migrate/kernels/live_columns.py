"""What the kernels of a live ZooKeeper's answers fill, and where in it what stands: for those who call them."""

from __future__ import annotations

from typing import Final

from migrate.kernels import znode_columns

# columns of `rows` (int32), one a partition; replicas and ISR are runs of `members`
LEADER, LEADER_EPOCH, WRITER = znode_columns.LEADER, znode_columns.LEADER_EPOCH, znode_columns.WRITER
REPLICAS, REPLICA_COUNT = znode_columns.REPLICAS, znode_columns.REPLICA_COUNT
ISR, ISR_COUNT, ROW_COLUMNS = znode_columns.ISR, znode_columns.ISR_COUNT, znode_columns.ROW_COLUMNS
# columns of `longs` (int64), one a state: its mzxid, and where in the answer its result begins
MZXID, WHERE = range(2)
LONG_COLUMNS: Final = 2
# in the place of a leader (-1 is none): there is data which is not plain; there is no znode; it may not be read
NOT_PLAIN, MISSING, DENIED = -2, -3, -4
# columns of `topics` (int64): the id's halves, the first row, how many (0: not plain)
HIGH, LOW, FIRST, COUNT = range(4)
TOPIC_COLUMNS: Final = 4
