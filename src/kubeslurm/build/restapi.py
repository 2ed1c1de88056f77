"""slurmrestd's objects: a Deployment and the Service in front of it."""

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.build.common import parts
from kubeslurm.build.common.merge import merge_container, merge_metadata, merge_pod_spec, merge_service_spec
from kubeslurm.build.controller import config
from kubeslurm.slurm import conf

KIND = "RestApi"
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
    return (restapi.spec.service and restapi.spec.service.port) or names.SLURMRESTD_PORT


def client_settings(slurm_conf: str) -> dict[str, str]:
    """What of a slurm.conf slurmrestd goes by: a change of these, and only these, calls for new pods."""
    found = conf.values(conf.parse(slurm_conf))
    return {key: found[key] for key in CLIENT_KEYS if key in found}


def service(restapi: RestApi) -> Tree:
    """The one address of all replicas."""
    asked = restapi.spec.service
    port = parts.service_port(names.SLURMRESTD, service_port(restapi), asked.nodePort if asked else 0)
    layers = merge_metadata(
        {"labels": asked.labels, "annotations": asked.annotations} if asked else None,
        {"labels": labels.slurmrestd(restapi.name)},
    )
    return parts.object_tree(
        "v1",
        "Service",
        parts.metadata(names.restapi(restapi.name), restapi.metadata, KIND, layers),
        spec=merge_service_spec(
            {"type": "ClusterIP", **((asked and asked.spec) or {})},
            port,
            labels.selector(names.SLURMRESTD, restapi.name),
        ),
    )


def deployment(restapi: RestApi, controller: Controller, settings_hash: str) -> Tree:
    """The slurmrestd pods."""
    template = restapi.spec.template
    inherited = parts.inherited(restapi.metadata)
    user = {"labels": template.labels, "annotations": template.annotations} if template else None
    ours = {"labels": labels.slurmrestd(restapi.name)}
    stamps = {names.RESTART_HASH: settings_hash, names.DEFAULT_CONTAINER: names.SLURMRESTD}
    return parts.object_tree(
        "apps/v1",
        "Deployment",
        parts.metadata(names.restapi(restapi.name), restapi.metadata, KIND, merge_metadata(inherited, user, ours)),
        spec={
            "replicas": restapi.spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": parts.selected(labels.selector(names.SLURMRESTD, restapi.name)),
            "template": {
                "metadata": merge_metadata(inherited, user, ours, {"annotations": stamps}),
                "spec": pod_spec(restapi, controller),
            },
        },
    )


def pod_spec(restapi: RestApi, controller: Controller) -> Tree:
    """One slurmrestd pod, with the user's template over it."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": parts.selected(labels.selector(names.SLURMRESTD, restapi.name)),
    }
    sources = [parts.configmap_file(names.config(controller.name), config.SLURM_CONF, config.SLURM_CONF)]
    if key := controller.spec.slurmKeyRef:
        sources.append(parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE))
    base: Tree = {
        "automountServiceAccountToken": False,
        # It answers for as long as a client keeps its connection open, and no request takes longer than this.
        "terminationGracePeriodSeconds": 5,
        "securityContext": {**parts.nonroot(names.NOBODY_UID), "fsGroup": names.NOBODY_UID},
        "topologySpreadConstraints": [spread],
        "containers": [_slurmrestd(restapi, controller)],
        "volumes": [parts.projected(names.VOLUME_ETC, 0o600, sources)],
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
        "ports": [{"name": names.SLURMRESTD, "containerPort": names.SLURMRESTD_PORT, "protocol": "TCP"}],
        "startupProbe": parts.tcp_probe(names.SLURMRESTD_PORT, period=1, failures=60),
        "livenessProbe": parts.tcp_probe(names.SLURMRESTD_PORT, period=10, failures=6),
        "readinessProbe": parts.tcp_probe(names.SLURMRESTD_PORT, period=2, failures=3),
        "securityContext": parts.nonroot(names.NOBODY_UID),
        "volumeMounts": [{"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True}],
    }
    merged = merge_container(base, restapi.spec.slurmrestd or {})
    merged["args"] = [*merged["args"], LISTEN]
    return merged
