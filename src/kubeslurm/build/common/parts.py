"""Small parts that several daemons' objects are put together from."""

from collections.abc import Iterable, Mapping

from kubeslurm.api import names
from kubeslurm.api.meta import ObjectMeta, Tree

# These change with every apply or chart version; on a pod template they would restart daemons for nothing.
VOLATILE_LABELS = frozenset({"helm.sh/chart", "app.kubernetes.io/version"})
VOLATILE_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration", "meta.helm.sh/", f"{names.OUR_GROUP}/")

# `cat` runs in the background because a shell handles a signal only between foreground commands:
# otherwise the sidecar would sit out the whole termination grace period on an idle pipe.
LOGFILE_SCRIPT = """\
trap 'exit 0' TERM
trap 'exit 1' INT HUP
mkdir -p "$(dirname "$SOCKET")"
if ! [ -p "$SOCKET" ]; then
  rm -f "$SOCKET"
  mkfifo -m 777 "$SOCKET"
fi
while :; do
  cat "$SOCKET" &
  wait $!
done
"""


def owner(meta: ObjectMeta, kind: str) -> Tree:
    """An owner reference that makes `meta`'s object the manager of a child."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def inherited(meta: ObjectMeta) -> Tree:
    """Labels and annotations of a custom resource that its children take over."""
    return {
        "labels": {key: value for key, value in meta.labels.items() if key not in VOLATILE_LABELS},
        "annotations": {
            key: value for key, value in meta.annotations.items() if not key.startswith(VOLATILE_ANNOTATIONS)
        },
    }


def metadata(name: str, parent: ObjectMeta, kind: str, layers: Tree) -> Tree:
    """The metadata of a child: its name, its owner, and labels and annotations already merged."""
    tree: Tree = {"name": name, "namespace": parent.namespace, "ownerReferences": [owner(parent, kind)]}
    return tree | {field: value for field, value in layers.items() if value}


def logfile(path: str, image: str) -> Tree:
    """A sidecar that turns a daemon's log file into container logs."""
    return {
        "name": names.LOGFILE,
        "image": image,
        "restartPolicy": "Always",
        "command": ["sh", "-c", LOGFILE_SCRIPT],
        "env": [{"name": "SOCKET", "value": path}],
        "volumeMounts": [{"name": names.VOLUME_LOGFILE, "mountPath": names.LOG_DIR}],
    }


def memory(name: str) -> Tree:
    """A volume in memory that ends with its pod."""
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def projected(name: str, mode: int, sources: Iterable[Tree]) -> Tree:
    """Several ConfigMaps and Secrets in one directory."""
    return {"name": name, "projected": {"defaultMode": mode, "sources": list(sources)}}


def secret_file(secret: str, key: str, path: str) -> Tree:
    """One key of a Secret as a file."""
    return {"secret": {"name": secret, "items": [{"key": key, "path": path}]}}


def configmap_file(configmap: str, key: str, path: str) -> Tree:
    """One key of a ConfigMap as a file."""
    return {"configMap": {"name": configmap, "items": [{"key": key, "path": path}]}}


def nonroot(uid: int) -> Tree:
    """Runs as one unprivileged user."""
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid}


def http_probe(path: str, port: str, *, period: int, failures: int) -> Tree:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": period, "failureThreshold": failures}


def tcp_probe(port: int, *, period: int, failures: int) -> Tree:
    return {"tcpSocket": {"port": port}, "periodSeconds": period, "failureThreshold": failures}


def service_port(name: str, port: int, node_port: int) -> Tree:
    """The port that the operator adds to a daemon's Service."""
    tree: Tree = {"name": name, "protocol": "TCP", "port": port, "targetPort": name}
    return tree | ({"nodePort": node_port} if node_port else {})


def object_tree(api_version: str, kind: str, meta: Tree, **fields: object) -> Tree:
    """A whole object; fields that are None are left out."""
    body = {key: value for key, value in fields.items() if value is not None}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def selected(labels: Mapping[str, str]) -> Tree:
    """A label selector for exactly these labels."""
    return {"matchLabels": dict(labels)}
