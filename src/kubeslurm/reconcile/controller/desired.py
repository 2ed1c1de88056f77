"""Makes the desired configuration, with the lines that nothing asks for and that workers or jobs still use."""

from collections.abc import Iterable

import msgspec

from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common import digest
from kubeslurm.build.controller import config, owned
from kubeslurm.control import references, worker_pods
from kubeslurm.decide.config import kept_lines
from kubeslurm.decide.config.facts import Configuration
from kubeslurm.decide.config.kept_lines import KeptLine, Use
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.slurm import conf
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.conf.records import PARTITION, Record, records
from kubeslurm.slurm.errors import SlurmError
from kubeslurm.slurm.jobs import BY_PARTITION


class Desired(msgspec.Struct, frozen=True):
    """The desired configuration, settings in it that are refused, and lines of the old one that stay."""

    config: Configuration | None = None
    refused: tuple[conf.Problem, ...] = ()
    kept: tuple[KeptLine, ...] = ()


async def desire(
    caches: Caches, controller: Controller, old: Configuration | None, slurm: SlurmCluster | None
) -> Desired:
    """What is desired now; `slurm` is None while it is silent."""
    sources = _sources(caches, controller, old)
    files = config.files(sources)
    kept: tuple[KeptLine, ...] = ()
    if old is not None and not controller.spec.external:
        new = records(files)
        if gone := kept_lines.dropped(records(old.files), new):
            running = controller.status.configHash == old.digest
            kept = kept_lines.keep(gone, new, await _use(caches, slurm, gone, running=running))
    if kept:
        lines = tuple(each.record.text for each in kept)
        files = config.files(msgspec.structs.replace(sources, kept_lines=lines))
    return Desired(Configuration(digest.of_files(files), files), owned.problems(sources, files), kept)


def _sources(caches: Caches, controller: Controller, old: Configuration | None) -> config.Sources:
    nodesets = references.nodesets(caches, Key(*controller.key))
    found = {name: references.configmap(caches, controller.namespace, name) for name in config.referenced(controller)}
    current = conf.values(conf.parse(old.slurm_conf)).get("maxnodecount", "") if old else ""
    needed = sum(max(nodeset.spec.replicas or 0, nodeset.status.desired) for nodeset in nodesets)
    return config.Sources(
        controller=controller,
        nodesets=nodesets,
        accounting=references.accounting(caches, controller),
        configmaps={name: configmap for name, configmap in found.items() if configmap is not None},
        max_node_count=conf.max_node_count(needed, int(current) if current.isdigit() else 0),
    )


async def _use(caches: Caches, slurm: SlurmCluster | None, gone: list[Record], *, running: bool) -> Use:
    """Who uses the lines; jobs are read now, because a line that a job needs must not go."""
    partitions = [record.name for record in gone if record.kind == PARTITION]
    if slurm is None:
        return Use(jobs=dict.fromkeys(partitions), running=running)
    try:
        if partitions:
            await slurm.jobs.update(within=0.0, pending=True)
    except SlurmError:
        return Use(jobs=dict.fromkeys(partitions), running=running)
    jobs = {name: _jobs_in(slurm, name) for name in partitions}
    return Use(served=frozenset(_served(caches, slurm)), jobs=jobs, running=running)


def _jobs_in(slurm: SlurmCluster, partition: str) -> int | None:
    known = slurm.jobs.store.count(BY_PARTITION, partition)
    return known if known or (slurm.jobs.complete and slurm.jobs.pending_complete) else None


def _served(caches: Caches, slurm: SlurmCluster) -> Iterable[str]:
    """NodeSets by the features of nodes that are up, or down and have a pod."""
    for node in slurm.snapshot.store:
        if not node.down or worker_pods.BY_SLURM_NODE.count(caches, f"{slurm.key}/{node.name}"):
            yield from node.features
