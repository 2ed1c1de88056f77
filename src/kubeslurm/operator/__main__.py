"""`python -m kubeslurm.operator operator|webhook|leave FLAGS`: what the container images start."""

import sys

from kubeslurm.operator import launch

PROCESSES = {"operator": launch.operator, "webhook": launch.webhook, "leave": launch.leave}

sys.exit(PROCESSES[sys.argv[1]](sys.argv[2:]))
