"""Training by several processes, each of which holds a part of the graph."""

from user_dgl.distributed.partition import write_partition
from user_dgl.distributed.run import check_machines, launched, train

__all__ = [
    "check_machines",
    "launched",
    "train",
    "write_partition",
]
