"""slurmctld's objects: its Service, its StatefulSet, the checked configuration, the metrics monitor."""

import base64
from collections.abc import Mapping

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.meta import tree as plain
from kubeslurm.api.slinky.controller import Controller, Persistence
from kubeslurm.api.slinky.fragments import MetricsEndpoint
from kubeslurm.build.common import parts
from kubeslurm.build.common.merge import merge_container, merge_metadata, merge_pod_spec, merge_service_spec
from kubeslurm.build.controller import config

KIND = "Controller"
# Odd but harmless: existing pods have it, and the kubelet adds what fsGroup needs.
CONFIG_MODE = 0o610
# A busy slurmctld writes its whole state at SIGTERM; cut short it loses jobs.
GRACE = 120
METRICS_PATHS = ("/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler")


class Stamps(msgspec.Struct, frozen=True):
    """Hashes in the pod template: slurmctld restarts when one of them changes, and for nothing else."""

    slurm_key: str = ""
    jwt_key: str = ""
    restart: str = ""


def service(controller: Controller) -> Tree:
    """The one address of slurmctld, which resolves to the pod from its first second on."""
    asked = controller.spec.service
    port = parts.service_port(names.SLURMCTLD, config.slurmctld_port(controller), asked.nodePort if asked else 0)
    user = {"type": "ClusterIP", "publishNotReadyAddresses": True, **((asked and asked.spec) or {})}
    layers = merge_metadata(
        parts.inherited(controller.metadata),
        {"labels": asked.labels, "annotations": asked.annotations} if asked else None,
        {"labels": labels.slurmctld(controller.name)},
    )
    return parts.object_tree(
        "v1",
        "Service",
        parts.metadata(names.controller(controller.name), controller.metadata, KIND, layers),
        spec=merge_service_spec(user, port, labels.selector(names.SLURMCTLD, controller.name)),
    )


def configmap(controller: Controller, files: Mapping[str, str], digest: str) -> Tree:
    """The configuration that slurmctld reads; only files that were checked get in here."""
    layers = merge_metadata(
        parts.inherited(controller.metadata),
        {"labels": labels.slurmctld(controller.name), "annotations": {names.CONFIG_LIVE: digest}},
    )
    return parts.object_tree(
        "v1",
        "ConfigMap",
        parts.metadata(names.config(controller.name), controller.metadata, KIND, layers),
        immutable=False,
        data=dict(files),
    )


def statefulset(controller: Controller, stamps: Stamps) -> Tree:
    """The StatefulSet of slurmctld."""
    template = controller.spec.template
    inherited = parts.inherited(controller.metadata)
    user = {"labels": template.labels, "annotations": template.annotations} if template else None
    ours = {"labels": labels.slurmctld(controller.name)}
    return parts.object_tree(
        "apps/v1",
        "StatefulSet",
        parts.metadata(
            names.controller(controller.name), controller.metadata, KIND, merge_metadata(inherited, user, ours)
        ),
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "podManagementPolicy": "Parallel",
            "serviceName": names.controller(controller.name),
            "selector": parts.selected(labels.selector(names.SLURMCTLD, controller.name)),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "template": {
                "metadata": merge_metadata(inherited, user, ours, {"annotations": _annotations(stamps)}),
                "spec": pod_spec(controller),
            },
            **_claim_templates(controller),
        },
    )


def pod_spec(controller: Controller) -> Tree:
    """The slurmctld pod, with the user's template over it."""
    spec, host = controller.spec, names.host(names.controller(controller.name), controller.namespace)
    container = merge_container(_slurmctld(controller), spec.slurmctld or {})
    sidecar = merge_container(parts.logfile(names.SLURMCTLD_LOG, container.get("image", "")), spec.logfile or {})
    base: Tree = {
        "automountServiceAccountToken": False,
        # Through its Service a pod meets itself as a stranger: slurmctld could not call back an srun that waits here.
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": [host]}],
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {**parts.nonroot(names.SLURM_UID), "fsGroup": names.SLURM_UID},
        "initContainers": [sidecar],
        "containers": [container],
        "volumes": _volumes(controller),
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def key_files(controller: Controller) -> list[Tree]:
    """The two keys as files of a projected volume."""
    refs = ((controller.spec.slurmKeyRef, names.SLURM_KEY_FILE), (controller.spec.jwt_ref, names.JWT_KEY_FILE))
    return [parts.secret_file(ref.name, ref.key, file) for ref, file in refs if ref is not None]


def kept_key(controller: Controller, key: bytes) -> Tree:
    """A copy of the key that signs our tokens; an uninstall deletes the original first, and draining needs it last."""
    layers = merge_metadata(parts.inherited(controller.metadata), {"labels": labels.slurmctld(controller.name)})
    return parts.object_tree(
        "v1",
        "Secret",
        parts.metadata(names.kept_key(controller.name), controller.metadata, KIND, layers),
        type="Opaque",
        data={names.JWT_KEY_FILE: base64.b64encode(key).decode()},
    )


def service_monitor(controller: Controller) -> Tree | None:
    """Tells Prometheus what to scrape, if that is wanted."""
    metrics = controller.spec.metrics
    monitor = metrics.serviceMonitor if metrics and metrics.enabled else None
    if monitor is None or not monitor.enabled:
        return None
    endpoints = monitor.endpoints or tuple(MetricsEndpoint(path=path) for path in METRICS_PATHS)
    layers = merge_metadata(
        {"labels": monitor.labels, "annotations": monitor.annotations}, {"labels": labels.slurmctld(controller.name)}
    )
    return parts.object_tree(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        parts.metadata(names.controller(controller.name), controller.metadata, KIND, layers),
        spec={
            "selector": parts.selected(labels.selector(names.SLURMCTLD, controller.name)),
            "namespaceSelector": {"matchNames": [controller.namespace]},
            "endpoints": [_endpoint(each, monitor.interval, monitor.scrapeTimeout) for each in endpoints],
        },
    )


def _endpoint(endpoint: MetricsEndpoint, interval: str, timeout: str) -> Tree:
    fields = {
        "port": names.SLURMCTLD,
        "scheme": "http",
        "path": endpoint.path,
        "interval": endpoint.interval or interval,
        "scrapeTimeout": endpoint.scrapeTimeout or timeout,
    }
    return {key: value for key, value in fields.items() if value}


def _annotations(stamps: Stamps) -> dict[str, str]:
    return {
        names.SLURM_KEY_HASH: stamps.slurm_key,
        names.JWT_KEY_HASH: stamps.jwt_key,
        names.RESTART_HASH: stamps.restart,
        names.DEFAULT_CONTAINER: names.SLURMCTLD,
    }


def _slurmctld(controller: Controller) -> Tree:
    port = config.slurmctld_port(controller)
    mounts = (
        (names.VOLUME_ETC, names.ETC_DIR),
        (names.VOLUME_RUN, names.RUN_DIR),
        (names.VOLUME_STATE, names.state_dir(controller.cluster_name)),
        (names.VOLUME_AUTHSOCKET, names.AUTHSOCKET_DIR),
        (names.VOLUME_LOGFILE, names.LOG_DIR),
    )
    return {
        "name": names.SLURMCTLD,
        "ports": [{"name": names.SLURMCTLD, "containerPort": port, "protocol": "TCP"}],
        # Quick to notice that it is up; patient, because recovering the state of a large cluster takes minutes.
        "startupProbe": parts.http_probe("/livez", names.SLURMCTLD, period=1, failures=600),
        "livenessProbe": parts.http_probe("/livez", names.SLURMCTLD, period=10, failures=6),
        "readinessProbe": parts.http_probe("/readyz", names.SLURMCTLD, period=2, failures=3),
        "securityContext": parts.nonroot(names.SLURM_UID),
        "volumeMounts": [
            {"name": name, "mountPath": path} | ({"readOnly": True} if name == names.VOLUME_ETC else {})
            for name, path in mounts
        ],
    }


def _volumes(controller: Controller) -> list[Tree]:
    persistence = controller.spec.persistence or Persistence()
    sources = [{"configMap": {"name": names.config(controller.name)}}, *key_files(controller)]
    volumes: list[Tree] = [
        parts.projected(names.VOLUME_ETC, CONFIG_MODE, sources),
        parts.memory(names.VOLUME_LOGFILE),
        parts.memory(names.VOLUME_RUN),
        {"name": names.VOLUME_AUTHSOCKET, "emptyDir": {}},
    ]
    if not persistence.enabled:
        volumes.append({"name": names.VOLUME_STATE, "emptyDir": {}})
    elif persistence.existingClaim:
        claim = {"claimName": persistence.existingClaim}
        volumes.append({"name": names.VOLUME_STATE, "persistentVolumeClaim": claim})
    return volumes


def _claim_templates(controller: Controller) -> Tree:
    persistence = controller.spec.persistence or Persistence()
    if not persistence.enabled or persistence.existingClaim:
        return {}
    own = ("enabled", "existingClaim")
    asked = {key: value for key, value in plain(persistence).items() if value and key not in own}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}} | asked
    if persistence.storageClassName == "":
        wanted["storageClassName"] = ""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": names.VOLUME_STATE},
        "spec": wanted,
    }
    return {"volumeClaimTemplates": [claim]}
