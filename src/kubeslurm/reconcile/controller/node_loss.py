"""Frees slurmctld's name from a machine that is gone, so that its StatefulSet can start it elsewhere."""

from kubeslurm.api.kinds import NODE, POD
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.decide.node_loss import is_lost
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.report.events import Event, Recorder


async def rescue(kube: Kube, caches: Caches, events: Recorder, controller: Controller, pod: Pod | None) -> None:
    """Deletes the slurmctld pod of a lost machine at once; Kubernetes by itself takes a minute."""
    if pod is None or not is_lost(pod, caches.store(NODE).get(Key("", pod.spec.nodeName))):
        return
    await kube.delete(POD, Key(pod.namespace, pod.name), uid=pod.metadata.uid, grace=0)
    events.warning(controller, Event.NODE_LOST, f"node {pod.spec.nodeName} is gone: slurmctld is started elsewhere")
