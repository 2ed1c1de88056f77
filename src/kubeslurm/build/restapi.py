"""slurmrestd: its Deployment and its Service."""

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import DEPLOYMENT
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.build.common.containers import nonroot, tcp_port, tcp_probe
from kubeslurm.build.common.merge import merge_container, merge_pod_spec
from kubeslurm.build.common.metadata import child_metadata, given, label_selector, object_tree, workload_metadata
from kubeslurm.build.common.services import daemon_service, port_of
from kubeslurm.build.common.volumes import configmap_file, etc_mount, projected
from kubeslurm.build.controller.config import SLURM_CONF
from kubeslurm.slurm import conf

LISTEN = f"0.0.0.0:{names.SLURMRESTD_PORT}"
# slurmrestd reads slurm.conf once; these are the settings in it that matter to a client of slurmctld and slurmdbd.
CLIENT_KEYS = (
    "accountingstoragehost",
    "accountingstorageport",
    "accountingstoragetype",
    "authalttypes",
    "authinfo",
    "authtype",
    "clustername",
    "communicationparameters",
    "messagetimeout",
    "slurmctldaddr",
    "slurmctldhost",
    "slurmctldport",
)


def service_port(restapi: RestApi) -> int:
    """Where the Service listens; the pods always listen on slurmrestd's own port."""
    return port_of(restapi.spec.service, names.SLURMRESTD_PORT)


def client_settings(slurm_conf: str) -> dict[str, str]:
    """The settings in slurm.conf that slurmrestd uses; only a change of these replaces its pods."""
    found = conf.values(conf.parse(slurm_conf))
    return {key: found[key] for key in CLIENT_KEYS if key in found}


def service(restapi: RestApi) -> Tree:
    """The one address of all replicas."""
    spec, own = restapi.spec.service, {"labels": labels.slurmrestd(restapi.name)}
    return daemon_service(
        child_metadata(restapi, names.restapi(restapi.name), given(spec), own),
        spec,
        names.SLURMRESTD,
        service_port(restapi),
        labels.selector(names.SLURMRESTD, restapi.name),
    )


def deployment(restapi: RestApi, controller: Controller, settings_hash: str) -> Tree:
    """The slurmrestd pods."""
    annotations = {names.RESTART_HASH: settings_hash, names.DEFAULT_CONTAINER: names.SLURMRESTD}
    metadata, pod_metadata = workload_metadata(
        restapi, names.restapi(restapi.name), restapi.spec.template, labels.slurmrestd(restapi.name), annotations
    )
    return object_tree(
        DEPLOYMENT,
        metadata,
        spec={
            "replicas": restapi.spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": label_selector(labels.selector(names.SLURMRESTD, restapi.name)),
            "template": {"metadata": pod_metadata, "spec": pod_spec(restapi, controller)},
        },
    )


def pod_spec(restapi: RestApi, controller: Controller) -> Tree:
    """One slurmrestd pod, with the user's template over it."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": label_selector(labels.selector(names.SLURMRESTD, restapi.name)),
    }
    slurm_conf = configmap_file(names.config(controller.name), SLURM_CONF, SLURM_CONF)
    base: Tree = {
        "automountServiceAccountToken": False,
        # It runs for as long as a client keeps its connection open, and no request takes longer than this.
        "terminationGracePeriodSeconds": 5,
        "securityContext": {**nonroot(names.NOBODY_UID), "fsGroup": names.NOBODY_UID},
        "topologySpreadConstraints": [spread],
        "containers": [_slurmrestd(restapi, controller)],
        # No slurm.key: it passes on the tokens of its clients, and could pretend to be anybody with the key.
        "volumes": [projected(names.VOLUME_ETC, [slurm_conf])],
    }
    return merge_pod_spec(base, (restapi.spec.template and restapi.spec.template.spec) or {})


def _slurmrestd(restapi: RestApi, controller: Controller) -> Tree:
    base: Tree = {
        "name": names.SLURMRESTD,
        # Without a database the accounting half of the API could only fail.
        "args": [] if controller.spec.accountingRef else ["-s", "openapi/slurmctld"],
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
            {"name": "SLURM_JSON", "value": "compact"},
        ],
        "ports": [tcp_port(names.SLURMRESTD, names.SLURMRESTD_PORT)],
        "startupProbe": tcp_probe(names.SLURMRESTD_PORT, period=1, failures=60),
        "livenessProbe": tcp_probe(names.SLURMRESTD_PORT, period=10, failures=6),
        "readinessProbe": tcp_probe(names.SLURMRESTD_PORT, period=2, failures=3),
        "securityContext": nonroot(names.NOBODY_UID),
        "volumeMounts": [etc_mount()],
    }
    merged = merge_container(base, restapi.spec.slurmrestd or {})
    merged["args"] = [*merged["args"], LISTEN]
    return merged
