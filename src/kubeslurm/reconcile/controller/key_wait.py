"""Looks whether a changed slurm.key has to wait for running jobs."""

import asyncio

import msgspec

from kubeslurm.api import names
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.control import key_change
from kubeslurm.control.registration import Context
from kubeslurm.decide.config.facts import Facts
from kubeslurm.decide.keys import KeyChange, waits
from kubeslurm.engine.key import Key
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError, Unauthorized
from kubeslurm.slurm.jobs import ON_NODES

DEADLINE = 3.0


async def with_key_change(context: Context, controller: Controller, facts: Facts) -> Facts:
    """The facts, and the change of the slurm.key that waits, if one does."""
    if controller.deleting or not key_change.is_pending(context.caches, controller):
        return facts
    change = await _change(context.clusters.of(Key(*controller.key)), facts.pod)
    return msgspec.structs.replace(facts, waiting_key=change) if waits(change) else facts


async def _change(slurm: SlurmCluster | None, pod: Pod | None) -> KeyChange:
    started = _has_run(pod)
    if slurm is None:
        return KeyChange(started=started, jobs=None)
    try:
        # Read now, and not from a store: this is the last look before slurmctld is replaced.
        async with asyncio.timeout(DEADLINE):
            rows = await slurm.client.jobs_state()
    except (SlurmError, TimeoutError) as error:
        return KeyChange(started=started, jobs=None, token_refused=isinstance(error, Unauthorized))
    return KeyChange(started=started, jobs=len({row.job_id for row in rows if not ON_NODES.isdisjoint(row.state)}))


def _has_run(pod: Pod | None) -> bool:
    status = pod.container_status(names.SLURMCTLD) if pod else None
    return status is not None and status.ever_started
