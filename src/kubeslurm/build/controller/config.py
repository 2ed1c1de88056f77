"""slurm.conf and the files beside it, and the ConfigMap that slurmctld mounts them from.

The order and form of the lines is what existing clusters have; a difference would look like a change to all of them.
"""

from collections.abc import Iterator, Mapping

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONFIGMAP
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.fragments import LocalObjectReference
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.views import ConfigMap
from kubeslurm.build.common.conf_text import auth_parameters, section
from kubeslurm.build.common.metadata import child_metadata, inherited, object_tree
from kubeslurm.build.common.services import port_of
from kubeslurm.build.controller.service import slurmctld_port
from kubeslurm.slurm import conf

SLURM_CONF = names.SLURM_CONF
CGROUP_CONF = "cgroup.conf"
CGROUP_TEXT = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"


class Sources(msgspec.Struct, frozen=True):
    """Everything that the configuration of one cluster is made from."""

    controller: Controller
    nodesets: tuple[NodeSet, ...] = ()
    accounting: Accounting | None = None
    configmaps: Mapping[str, ConfigMap] = {}
    max_node_count: int = conf.SMALLEST_NODE_COUNT
    kept_lines: tuple[str, ...] = ()  # of NodeSets and partitions that are still in use


def referenced(controller: Controller) -> list[str]:
    """The ConfigMaps whose files belong to the configuration, by name."""
    spec = controller.spec
    lists = (
        spec.configFileRefs,
        spec.prologScriptRefs,
        spec.epilogScriptRefs,
        spec.prologSlurmctldScriptRefs,
        spec.epilogSlurmctldScriptRefs,
    )
    found = {ref.name for refs in lists for ref in refs or () if ref.name}
    return sorted(found | ({spec.jwksKeyRef.name} if spec.jwksKeyRef else set()))


def files(sources: Sources) -> dict[str, str]:
    """All files of the configuration by name, with those of referenced ConfigMaps; tried and mounted together."""
    spec = sources.controller.spec
    if spec.external:
        return {SLURM_CONF: external_conf(sources)}
    result = {CGROUP_CONF: CGROUP_TEXT}
    for _, data in provided(sources):
        result |= data
    return result | {SLURM_CONF: slurm_conf(sources)}


def provided(sources: Sources) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The files of referenced ConfigMaps, by the name of each."""
    jwks = sources.controller.spec.jwksKeyRef
    for name in referenced(sources.controller):
        data = sources.configmaps[name].data
        if jwks is None or name != jwks.name:
            yield name, data
        else:
            yield name, {names.JWKS_FILE: data.get(jwks.key, "")}


def slurm_conf(sources: Sources) -> str:
    """slurm.conf of a cluster whose slurmctld runs here."""
    sections = [
        _general(sources),
        _logging(),
        _plugins(sources.controller),
        _accounting(sources.accounting),
        _controller_scripts(sources),
        _job_scripts(sources),
        _nodesets(sources),
        _extra(sources.controller.spec.extraConf),
        _merged(sources.controller),
    ]
    return "".join(sections)


def generated(sources: Sources) -> str:
    """The part of slurm.conf in which the operator tells daemons and clients how to find and trust each other."""
    return _general(sources) + _plugins(sources.controller)


def external_conf(sources: Sources) -> str:
    """The settings that slurmrestd needs for a slurmctld that runs elsewhere."""
    controller = sources.controller
    external = controller.spec.externalConfig
    host, port = (external.host, external.port) if external else ("", names.SLURMCTLD_PORT)
    general = section(
        "GENERAL",
        f"ClusterName={controller.cluster_name}",
        f"SlurmUser={names.SLURM_USER}",
        f"SlurmctldHost={host}",
        f"SlurmctldPort={port}",
    )
    plugins = section("PLUGINS & PARAMETERS", "AuthType=auth/slurm", "CredType=cred/slurm", "AuthAltTypes=auth/jwt")
    return general + plugins + _accounting(sources.accounting)


def configmap(controller: Controller, files: Mapping[str, str], digest: str) -> Tree:
    """The configuration that slurmctld reads; only accepted files get in here."""
    own = {"labels": labels.slurmctld(controller.name), "annotations": {names.CONFIG_DELIVERED: digest}}
    metadata = child_metadata(controller, names.config(controller.name), inherited(controller), own)
    return object_tree(CONFIGMAP, metadata, immutable=False, data=dict(files))


def _general(sources: Sources) -> str:
    controller = sources.controller
    meta = controller.metadata
    address = names.host(names.controller(meta.name), meta.namespace)
    return section(
        "GENERAL",
        f"ClusterName={controller.cluster_name}",
        f"SlurmUser={names.SLURM_USER}",
        f"SlurmctldHost={names.controller_pod(meta.name)}({address})",
        f"SlurmctldPort={slurmctld_port(controller)}",
        f"StateSaveLocation={names.state_dir(controller.cluster_name)}",
        "SlurmdUser=root",
        f"SlurmdPort={names.SLURMD_PORT}",
        f"SlurmdSpoolDir={names.SPOOL_DIR}",
        f"MaxNodeCount={sources.max_node_count}",
    )


def _logging() -> str:
    return section(
        "LOGGING",
        f"SlurmctldLogFile={names.SLURMCTLD_LOG}",
        f"SlurmSchedLogFile={names.SLURMCTLD_LOG}",
        f"SlurmdLogFile={names.SLURMD_LOG}",
    )


def _required(controller: Controller) -> dict[str, str]:
    """Comma lists that the cluster cannot do without, whatever a user adds to them."""
    auth = auth_parameters(jwks=controller.spec.jwksKeyRef is not None)
    return auth | {"SlurmctldParameters": "enable_configless,reconfig_on_restart"}


def _plugins(controller: Controller) -> str:
    metrics = controller.spec.metrics is not None and controller.spec.metrics.enabled
    lines = ["AuthType=auth/slurm", "CredType=cred/slurm", "AuthAltTypes=auth/jwt"]
    lines += [f"{key}={value}" for key, value in _required(controller).items()]
    return section("PLUGINS & PARAMETERS", *lines, *(["MetricsType=metrics/openmetrics"] if metrics else []))


def _accounting(accounting: Accounting | None) -> str:
    if accounting is None:
        return section("ACCOUNTING", "AccountingStorageType=accounting_storage/none")
    spec = accounting.spec
    if spec.external and spec.externalConfig:
        host, port = spec.externalConfig.host, spec.externalConfig.port
    else:
        host = names.accounting(accounting.metadata.name)
        port = port_of(spec.service, names.SLURMDBD_PORT)
    return section(
        "ACCOUNTING",
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={host}",
        f"AccountingStoragePort={port}",
    )


def _script_names(sources: Sources, refs: tuple[LocalObjectReference, ...] | None) -> list[str]:
    return sorted(file for ref in refs or () for file in sources.configmaps[ref.name].data)


def _controller_scripts(sources: Sources) -> str:
    spec = sources.controller.spec
    prologs = _script_names(sources, spec.prologSlurmctldScriptRefs)
    epilogs = _script_names(sources, spec.epilogSlurmctldScriptRefs)
    lines = [f"PrologSlurmctld={names.ETC_DIR}/{file}" for file in prologs]
    lines += [f"EpilogSlurmctld={names.ETC_DIR}/{file}" for file in epilogs]
    return section("SLURMCTLD PROLOG & EPILOG", *lines)


def _job_scripts(sources: Sources) -> str:
    # Names without a path: slurmctld sends these files to the workers.
    lines = [f"Prolog={file}" for file in _script_names(sources, sources.controller.spec.prologScriptRefs)]
    lines += [f"Epilog={file}" for file in _script_names(sources, sources.controller.spec.epilogScriptRefs)]
    return section("PROLOG & EPILOG", *lines)


def _nodesets(sources: Sources) -> str:
    lines = []
    for nodeset in sorted(sources.nodesets, key=lambda nodeset: nodeset.metadata.name):
        name = nodeset.slurm_name
        lines.append(f"NodeSet={name} Feature={name}")
        partition = nodeset.spec.partition
        if partition is not None and partition.enabled:
            lines.append(f"PartitionName={name} Nodes={name} {partition.config}")
    return section("NODESET & PARTITION", *lines, *sources.kept_lines)


def _extra(text: str) -> str:
    return section("EXTRA CONFIG", text.rstrip("\n")) if text else ""


def _merged(controller: Controller) -> str:
    return section("MERGED CONFIG", *conf.merged(controller.spec.extraConf, _required(controller)))
