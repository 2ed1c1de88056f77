"""The Helm charts of Slinky's operator, as a take-over meets them: names, selectors, and CRDs that nothing keeps."""

from pathlib import Path

import yaml

from kubeslurm.api.crds import crds
from tests.support.predecessor.parts import Tree, obj

RELEASE = "slurm-operator"
WEBHOOK = f"{RELEASE}-webhook"
CRDS_RELEASE = f"{RELEASE}-crds"
PLACE = "slinky"
# Holds the Lease as that operator does, under its pod's host name.
OPERATOR = f"""\
import asyncio
from kubeslurm.kube.fence import Fence
from kubeslurm.kube.leader import Leader
from kubeslurm.kube.transport.connection import Connection, connect

async def main() -> None:
    await Leader(Connection(connect()), Fence(), namespace="{PLACE}").run()

asyncio.run(main())
"""


def write_charts(folder: Path, image: str) -> None:
    """The charts `slurm-operator`, which brings the CRDs when `crds.enabled` is set, and `slurm-operator-crds`."""
    definitions = [bare(tree) for tree in crds().values()]
    _write(folder / CRDS_RELEASE, definitions, [])
    _write(folder / RELEASE, definitions, operator_objects(image), condition=True)


def bare(tree: Tree) -> Tree:
    """A CRD without the annotation that keeps it."""
    return tree | {"metadata": {"name": tree["metadata"]["name"]}}


def operator_objects(image: str) -> list[Tree]:
    script = [{"name": RELEASE, "image": image, "command": ["/opt/kubeslurm/bin/python", "-c", OPERATOR]}]
    idle = [{"name": "webhook", "image": image, "command": ["sleep", "infinity"]}]
    ports = [{"name": "https", "port": 443, "targetPort": 9443}, {"name": "health", "port": 8081, "targetPort": 8081}]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]}
    return [
        *_account(RELEASE, [leases]),
        *_account(WEBHOOK, []),
        _deployment(RELEASE, script),
        _deployment(WEBHOOK, idle),
        _service(RELEASE, {"clusterIP": "None", "ports": ports[1:]}),
        _service(WEBHOOK, {"ports": ports}),
        _hook("Validating", "controller-v1beta1.kb.io", "slinky.slurm.net", "v1beta1", "controllers"),
        _hook("Mutating", "podsbinding-v1.kb.io", "", "v1", "pods/binding"),
    ]


def _write(folder: Path, definitions: list[Tree], objects: list[Tree], *, condition: bool = False) -> None:
    (folder / "templates").mkdir(parents=True)
    chart = {"apiVersion": "v2", "name": folder.name, "version": "1.2.1", "appVersion": "1.2.1"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (folder / "values.yaml").write_text("crds: {enabled: false}\n")
    text = yaml.safe_dump_all(definitions)
    text = f"{{{{- if .Values.crds.enabled }}}}\n{text}{{{{- end }}}}\n" if condition else text
    (folder / "templates" / "crds.yaml").write_text(text)
    (folder / "templates" / "objects.yaml").write_text(yaml.safe_dump_all(objects))


def _labels(name: str) -> Tree:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": RELEASE}


def _account(name: str, rules: list[Tree]) -> list[Tree]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": PLACE}
    return [
        obj("v1", "ServiceAccount", name, _labels(name), {"namespace": PLACE}),
        obj("rbac.authorization.k8s.io/v1", "ClusterRole", name, _labels(name)) | {"rules": rules},
        obj("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name, _labels(name))
        | {"roleRef": role, "subjects": [subject]},
    ]


def _deployment(name: str, containers: list[Tree]) -> Tree:
    pod = {"serviceAccountName": name, "hostname": name, "terminationGracePeriodSeconds": 1, "containers": containers}
    template = {"metadata": {"labels": _labels(name)}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": _labels(name)}, "template": template}
    return obj("apps/v1", "Deployment", name, _labels(name), {"namespace": PLACE}) | {"spec": spec}


def _service(name: str, spec: Tree) -> Tree:
    return obj("v1", "Service", name, _labels(name), {"namespace": PLACE}) | {
        "spec": spec | {"selector": _labels(name)}
    }


def _hook(kind: str, name: str, group: str, version: str, resource: str) -> Tree:
    """An admission webhook whose certificate cert-manager would inject."""
    injected = {"annotations": {"cert-manager.io/inject-ca-from": f"{PLACE}/{WEBHOOK}-ca"}}
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resource]}
    hook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": WEBHOOK, "namespace": PLACE, "path": "/"}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "rules": [rule],
    }
    tree = obj("admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration", WEBHOOK, _labels(WEBHOOK), injected)
    return tree | {"webhooks": [hook]}
