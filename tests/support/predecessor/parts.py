"""Parts of which the other operator's objects are made: names, labels, volumes, containers."""

from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]
NAME = "old"
NODESET = f"{NAME}-worker-cpu"
CHART_LABELS = {
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/part-of": "slurm",
    "app.kubernetes.io/version": "26.05",
    "helm.sh/chart": "slurm-1.2.1",
}

LOG_SIDECAR = (
    'mkdir -p "$(dirname "$SOCKET")"; rm -f "$SOCKET"; mkfifo -m 777 "$SOCKET"; while :; do cat "$SOCKET"; done'
)


class Parts:
    """What depends on the namespace and the images of one cluster."""

    def __init__(self, namespace: str, images: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.images = images

    def image(self, name: str) -> Tree:
        return {"image": self.images[name], "imagePullPolicy": "IfNotPresent", "resources": {}}

    def slurmd(self) -> Tree:
        return self.image("slurmd") | {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}

    def logfile(self, path: str) -> Tree:
        return self.image("slurmctld") | {
            "name": "logfile",
            "restartPolicy": "Always",
            "command": ["sh", "-c", LOG_SIDECAR],
            "env": [{"name": "SOCKET", "value": path}],
            "volumeMounts": [{"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
        }


def obj(version: str, kind: str, name: str, labels: Tree, more: Tree | None = None) -> Tree:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels} | (more or {})}


def template(spec: Tree) -> Tree:
    return {"metadata": {"labels": CHART_LABELS}, "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}} | spec}


def selector(name: str, instance: str) -> Tree:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": instance}


def labels_of(name: str, instance: str, component: str) -> Tree:
    return selector(name, instance) | {"app.kubernetes.io/component": component}


def service(name: str, instance: str, port: int) -> Tree:
    return {"selector": selector(name, instance), "ports": [{"name": name, "port": port, "targetPort": name}]}


def secret_file(name: str, file: str) -> Tree:
    return {"secret": {"name": name, "items": [{"key": file, "path": file}]}}


def nonroot(uid: int) -> Tree:
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid}


def memory(name: str) -> Tree:
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def etc() -> Tree:
    return {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}
