"""slurmctld's StatefulSet and its pod."""

from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import PERSISTENT_VOLUME_CLAIM, STATEFULSET
from kubeslurm.api.meta import Tree
from kubeslurm.api.meta import tree as plain
from kubeslurm.api.slinky.controller import Controller, Persistence
from kubeslurm.build.common.containers import http_probe, log_sidecar, nonroot, tcp_port
from kubeslurm.build.common.merge import merge_container, merge_pod_spec, pruned
from kubeslurm.build.common.metadata import label_selector, object_tree, workload_metadata
from kubeslurm.build.common.volumes import etc_mount, key_files, memory, projected
from kubeslurm.build.controller.service import slurmctld_port

# Existing pods have it, and the kubelet adds what fsGroup needs.
CONFIG_MODE = 0o610
# A busy slurmctld writes its whole state at SIGTERM; killed before the end it loses jobs.
GRACE = 120
# It answers probes between its other work: while it writes its state or schedules many jobs, that takes seconds.
PATIENTLY = {"timeoutSeconds": 10}


def statefulset(controller: Controller, hashes: Mapping[str, str]) -> Tree:
    """The StatefulSet of slurmctld; another value in `hashes` (annotation -> hash) replaces the pod."""
    name = names.controller(controller.name)
    annotations = {**hashes, names.DEFAULT_CONTAINER: names.SLURMCTLD}
    metadata, pod_metadata = workload_metadata(
        controller, name, controller.spec.template, labels.slurmctld(controller.name), annotations
    )
    # Also on the object itself: the template of another operator is kept, with the hash that it has.
    recorded = {name: hashes[name] for name in (names.SLURM_KEY_HASH,) if name in hashes}
    metadata["annotations"] = metadata.get("annotations", {}) | recorded
    return object_tree(
        STATEFULSET,
        metadata,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": label_selector(labels.selector(names.SLURMCTLD, controller.name)),
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "template": {"metadata": pod_metadata, "spec": pod_spec(controller)},
            **_claim_templates(controller),
        },
    )


def requested(controller: Controller, hashes: Mapping[str, str]) -> Tree:
    """What users asked for of the pod: only a change of this replaces a running slurmctld."""
    spec = controller.spec
    given = {
        "slurmctld": spec.slurmctld,
        "logfile": spec.logfile,
        "template": spec.template and plain(spec.template),
        "persistence": spec.persistence and plain(spec.persistence),
        "keys": key_files(spec.slurmKeyRef, spec.jwt_ref),
        "port": slurmctld_port(controller),
        "clusterName": controller.cluster_name,
        "files": dict(hashes),
    }
    return pruned(given)


def pod_spec(controller: Controller) -> Tree:
    """The slurmctld pod, with the user's template over it."""
    spec, host = controller.spec, names.host(names.controller(controller.name), controller.namespace)
    container = merge_container(_slurmctld(controller), spec.slurmctld or {})
    sidecar = merge_container(log_sidecar(names.SLURMCTLD_LOG, container.get("image", "")), spec.logfile or {})
    base: Tree = {
        "automountServiceAccountToken": False,
        # Without this the pod reaches itself only through its Service, and slurmctld could not connect back to an srun
        # that waits in this pod.
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": [host]}],
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {**nonroot(names.SLURM_UID), "fsGroup": names.SLURM_UID},
        "initContainers": [sidecar],
        "containers": [container],
        "volumes": _volumes(controller),
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def _slurmctld(controller: Controller) -> Tree:
    return {
        "name": names.SLURMCTLD,
        "ports": [tcp_port(names.SLURMCTLD, slurmctld_port(controller))],
        # Quick to notice that it is up; patient, because recovering the state of a large cluster takes minutes.
        "startupProbe": http_probe("/livez", names.SLURMCTLD, period=1, failures=600) | PATIENTLY,
        "livenessProbe": http_probe("/livez", names.SLURMCTLD, period=10, failures=6) | PATIENTLY,
        "readinessProbe": http_probe("/readyz", names.SLURMCTLD, period=2, failures=3) | PATIENTLY,
        "securityContext": nonroot(names.SLURM_UID),
        "volumeMounts": [
            etc_mount(),
            {"name": names.VOLUME_RUN, "mountPath": names.RUN_DIR},
            {"name": names.VOLUME_STATE, "mountPath": names.state_dir(controller.cluster_name)},
            {"name": names.VOLUME_AUTHSOCKET, "mountPath": names.AUTHSOCKET_DIR},
            {"name": names.VOLUME_LOGFILE, "mountPath": names.LOG_DIR},
        ],
    }


def _volumes(controller: Controller) -> list[Tree]:
    persistence = controller.spec.persistence or Persistence()
    keys = key_files(controller.spec.slurmKeyRef, controller.spec.jwt_ref)
    sources = [{"configMap": {"name": names.config(controller.name)}}, *keys]
    volumes: list[Tree] = [
        projected(names.VOLUME_ETC, sources, CONFIG_MODE),
        memory(names.VOLUME_LOGFILE),
        memory(names.VOLUME_RUN),
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
    given = {key: value for key, value in plain(persistence).items() if value and key not in own}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}} | given
    if persistence.storageClassName == "":
        spec["storageClassName"] = ""
    return {"volumeClaimTemplates": [object_tree(PERSISTENT_VOLUME_CLAIM, {"name": names.VOLUME_STATE}, spec=spec)]}
