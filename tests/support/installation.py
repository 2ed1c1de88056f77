"""What an installation of Slinky's operator is made of, for any images: accounts, rights, workloads, admission."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from kubeslurm.api.meta import Tree
from kubeslurm.webhooks.certificates import issue, service_names

OPERATOR = "slurm-operator"
WEBHOOK = "slurm-operator-webhook"
CERTIFICATES = "slurm-operator-webhook-ca"
RBAC = "rbac.authorization.k8s.io"
ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]
READ = ["get", "list", "watch"]
KINDS = {each: f"{each}s" for each in ("accounting", "controller", "loginset", "nodeset", "restapi", "token")}
SLURM = list(KINDS.values())
LEASES = ("coordination.k8s.io", ["leases"], ["create", "get", "patch", "update"])
RIGHTS = {
    OPERATOR: (
        ("", ["configmaps", "events", "persistentvolumeclaims", "pods", "secrets", "services"], ALL),
        ("", ["nodes"], READ),
        ("", ["pods/status"], ["get", "patch", "update"]),
        ("apps", ["controllerrevisions", "deployments", "statefulsets"], ALL),
        LEASES,
        ("events.k8s.io", ["events"], ["create", "patch"]),
        ("monitoring.coreos.com", ["servicemonitors"], ALL),
        ("policy", ["poddisruptionbudgets"], ALL),
        ("slinky.slurm.net", SLURM, ALL),
        ("slinky.slurm.net", [f"{each}/finalizers" for each in SLURM], ["update"]),
        ("slinky.slurm.net", [f"{each}/status" for each in SLURM], ["get", "patch", "update"]),
    ),
    # It may write our kinds, and not read them.
    WEBHOOK: (
        ("", ["configmaps", "nodes", "persistentvolumeclaims", "pods/binding"], READ),
        ("", ["events"], ["create", "patch", "update", *READ]),
        ("", ["pods"], ["patch", "update", *READ]),
        LEASES,
        ("slinky.slurm.net", SLURM, ["create", "delete", "update"]),
    ),
}


def flags(part: str, namespace: str) -> list[str]:
    """Arguments of a container; each value stands for itself."""
    leads = ["--leader-elect", "--leader-elect-namespace", namespace]
    if part == WEBHOOK:
        return ["--zap-log-level", "info", "--server-addr", ":9443", "--health-addr", ":8081", *leads]
    workers = [word for kind in KINDS for word in (f"--{kind}-workers", "4")]
    addresses = ["--health-addr", ":8081", "--metrics-addr", ":8080"]
    return [*workers, "--slurmclient-workers", "2", "--zap-log-level", "info", *addresses, *leads]


def account(part: str, namespace: str) -> list[Tree]:
    """A ServiceAccount and what it may do in the whole cluster; the roles are called after the namespace as well."""
    metadata, role = {"name": part, "namespace": namespace}, {"name": f"{namespace}-{part}"}
    rules = [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds, verbs in RIGHTS[part]]
    bound: Tree = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": role}
    bound |= {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole"} | role}
    bound |= {"subjects": [{"kind": "ServiceAccount"} | metadata]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": role, "rules": rules},
        bound,
    ]


def workload(part: str, namespace: str, image: str) -> Tree:
    """The Deployment of one part: no command, no environment, no security settings, probes by number."""
    probe = {"port": 8081, "scheme": "HTTP"}
    container: Tree = {
        "name": part.removeprefix("slurm-operator-"),
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": flags(part, namespace),
        "livenessProbe": {"httpGet": {"path": "/healthz"} | probe},
        "readinessProbe": {"httpGet": {"path": "/readyz"} | probe},
    }
    pod: Tree = {"hostname": part, "serviceAccountName": part, "containers": [container]}
    spec: Tree = {"replicas": 1, "revisionHistoryLimit": 0, "selector": {"matchLabels": _labels(part)}}
    if part == WEBHOOK:
        mount = {"name": "certificates", "mountPath": "/tmp/k8s-webhook-server/serving-certs/", "readOnly": True}  # noqa: S108
        container["volumeMounts"] = [mount]
        pod["volumes"] = [{"name": "certificates", "secret": {"secretName": CERTIFICATES, "defaultMode": 0o644}}]
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    spec["template"] = {"metadata": {"labels": _labels(part)}, "spec": pod}
    metadata = {"name": part, "namespace": namespace, "labels": _labels(part)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def admission(namespace: str) -> tuple[list[Tree], Tree]:
    """The certificate and the Service of the admission server, and the configuration that trusts it."""
    bundle = issue(service_names(WEBHOOK, namespace), datetime.now(UTC))
    files = {"ca.crt": bundle.ca, "tls.crt": bundle.cert, "tls.key": bundle.key}
    data = {name: b64encode(text).decode() for name, text in files.items()}
    secret: Tree = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data}
    secret["metadata"] = {"name": CERTIFICATES, "namespace": namespace}
    ports = [{"name": "https", "port": 443, "targetPort": 9443}]
    service: Tree = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": WEBHOOK, "namespace": namespace}}
    service["spec"] = {"selector": _labels(WEBHOOK), "ports": ports}
    hooks = [_hook(kind, plural, namespace, data["ca.crt"]) for kind, plural in KINDS.items()]
    configuration: Tree = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return [secret, service], configuration | {"metadata": {"name": WEBHOOK}, "webhooks": hooks}


def whole(namespace: str, tags: Mapping[str, str]) -> tuple[list[Tree], Tree]:
    """Everything, with images of our build, and the configuration of the admission server by itself."""
    served, configuration = admission(namespace)
    place: Tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    parts: Iterable[str] = (OPERATOR, WEBHOOK)
    accounts = [tree for part in parts for tree in account(part, namespace)]
    workloads = [workload(part, namespace, f"localhost/{part}:{tags[part]}") for part in parts]
    return [place, *accounts, *served, *workloads], configuration


def _hook(kind: str, plural: str, namespace: str, authority: str) -> Tree:
    path = f"/validate-slinky-slurm-net-v1beta1-{kind}"
    system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kube-node-lease"]}
    rule = {"apiGroups": ["slinky.slurm.net"], "apiVersions": ["v1beta1"], "resources": [plural]}
    return {
        "name": f"{kind}-v1beta1.kb.io",
        "admissionReviewVersions": ["v1beta1"],
        "clientConfig": {
            "caBundle": authority,
            "service": {"name": WEBHOOK, "namespace": namespace, "path": path, "port": 443},
        },
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [system]},
        "rules": [rule | {"operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }


def _labels(part: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": part, "app.kubernetes.io/instance": OPERATOR}
