"""Writes to worker pods what is known about their Slurm nodes."""

from kubeslurm.api.kinds import POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.control import fan_out
from kubeslurm.control.fan_out import Error
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.plan import Plan, needs_no_patch
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import NotFound
from kubeslurm.report import worker_pod


async def patch_pods(kube: Kube, nodeset: NodeSet, facts: Facts, plan: Plan) -> tuple[Error, ...]:
    """Writes to each pod what changed, in one patch; why it has to go is on the pod before Slurm drains its node."""
    skipped = needs_no_patch(plan)
    found = (
        (worker, worker_pod.patch(nodeset, worker, plan.cordons.get(worker.name), facts))
        for worker in facts.workers
        if worker.name not in skipped
    )

    async def write(item: tuple[Worker, Tree]) -> None:
        worker, patch = item
        try:
            await kube.patch(POD, Key(*worker.pod.key), patch, type="strategic", subresource="status")
        except NotFound:
            return

    return await fan_out.for_each([(worker, patch) for worker, patch in found if patch is not None], write)
