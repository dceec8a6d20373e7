"""A program that holds the nodes of a Ray cluster: one for each line of its input, till that ends.

A line is a JSON object, the arguments of Ray's own ``Cluster.add_node``; "added" answers it.
"""

import json
import sys

from ray.cluster_utils import Cluster

cluster = Cluster()
for line in sys.stdin:
    cluster.add_node(wait=False, **json.loads(line))
    print("added", flush=True)
cluster.shutdown()
