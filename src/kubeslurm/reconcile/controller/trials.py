"""Trials of configurations: a slurmctld of the same image, started only to see whether it takes the files."""

from contextlib import suppress

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, POD
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.controller import trial
from kubeslurm.control.registration import Index
from kubeslurm.decide.config.facts import Configuration
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists


def _tried_for(obj: Resource) -> tuple[str, ...]:
    owner = obj.metadata.labels.get(names.LABEL_TRIAL)
    return (str(Key(obj.namespace, owner)),) if owner else ()


PODS_BY_TRIAL = Index(POD, "trial", _tried_for)
CONFIGMAPS_BY_TRIAL = Index(CONFIGMAP, "trial", _tried_for)


async def start(kube: Kube, controller: Controller, config: Configuration, node: str) -> None:
    """Starts the trial of a configuration; `node` is the one that slurmctld runs on, if it does."""
    await kube.apply(trial.configmap(controller, config.files, config.digest))
    with suppress(AlreadyExists):
        await kube.create(trial.pod(controller, config.digest, node))


async def clear(kube: Kube, caches: Caches, controller: Controller, kept: str) -> None:
    """Deletes all trials of a Controller but the one of this digest."""
    owner, name = Key(*controller.key), names.config_trial(controller.name, kept) if kept else ""
    for pod in PODS_BY_TRIAL.get(caches, owner):
        if pod.name != name and not pod.deleting:
            await kube.delete(POD, Key(pod.namespace, pod.name), uid=pod.metadata.uid, grace=0)
    for found in CONFIGMAPS_BY_TRIAL.get(caches, owner):
        if found.name != name:
            await kube.delete(CONFIGMAP, Key(found.namespace, found.name), uid=found.metadata.uid)
