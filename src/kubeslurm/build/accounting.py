"""slurmdbd's objects: its configuration, its Service and its StatefulSet."""

import base64
from collections.abc import Mapping

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.build.common import digest, parts
from kubeslurm.build.common.merge import merge_container, merge_metadata, merge_pod_spec, merge_service_spec
from kubeslurm.slurm import conf

KIND = "Accounting"
CONF = "slurmdbd.conf"
# A new release of Slurm converts the whole database before it listens; ended halfway it leaves a broken one behind.
CONVERSION_HOURS = 24


class Files(msgspec.Struct, frozen=True):
    """What slurmdbd reads, with the hashes that make it start anew when one of them changes."""

    conf: str
    slurm_key: str = ""
    jwt_key: str = ""
    jwks: str = ""


def service_port(accounting: Accounting) -> int:
    """Where the Service listens; the pod always listens on slurmdbd's own port."""
    return (accounting.spec.service and accounting.spec.service.port) or names.SLURMDBD_PORT


def slurmdbd_conf(accounting: Accounting, password: str) -> str:
    """slurmdbd.conf in the order and form that existing clusters have."""
    required, extra = _required(accounting), accounting.spec.extraConf
    sections = (
        _section(
            "GENERAL",
            f"DbdHost={names.accounting(accounting.name)}-0",
            f"DbdPort={names.SLURMDBD_PORT}",
            f"SlurmUser={names.SLURM_USER}",
        ),
        _section(
            "PLUGINS & PARAMETERS",
            "AuthType=auth/slurm",
            "AuthAltTypes=auth/jwt",
            *(f"{key}={value}" for key, value in required.items()),
        ),
        _storage(accounting, password),
        # In the foreground the log goes to stderr as well, which is where Kubernetes looks for it.
        _section("LOGGING", "LogFile=/dev/null"),
        _section("EXTRA CONFIG", extra.rstrip("\n")) if extra else "",
        _section("MERGED CONFIG", *conf.merged(extra, required)),
    )
    return "".join(sections)


def _storage(accounting: Accounting, password: str) -> str:
    storage = accounting.spec.storageConfig
    if storage is None:
        return ""
    return _section(
        "STORAGE",
        "StorageType=accounting_storage/mysql",
        f"StorageHost={storage.host}",
        f"StoragePort={storage.port}",
        f"StorageUser={storage.username}",
        f"StorageLoc={storage.database}",
        f"StoragePass={password}",
    )


def secret(accounting: Accounting, text: str) -> Tree:
    """The configuration with the password in it."""
    layers = merge_metadata(parts.inherited(accounting.metadata), {"labels": labels.slurmdbd(accounting.name)})
    return parts.object_tree(
        "v1",
        "Secret",
        parts.metadata(names.accounting(accounting.name), accounting.metadata, KIND, layers),
        data={CONF: base64.b64encode(text.encode()).decode()},
    )


def service(accounting: Accounting) -> Tree:
    """The one address of slurmdbd."""
    asked = accounting.spec.service
    port = parts.service_port(names.SLURMDBD, service_port(accounting), asked.nodePort if asked else 0)
    layers = merge_metadata(
        parts.inherited(accounting.metadata),
        {"labels": asked.labels, "annotations": asked.annotations} if asked else None,
        {"labels": labels.slurmdbd(accounting.name)},
    )
    return parts.object_tree(
        "v1",
        "Service",
        parts.metadata(names.accounting(accounting.name), accounting.metadata, KIND, layers),
        spec=merge_service_spec(
            {"type": "ClusterIP", **((asked and asked.spec) or {})},
            port,
            labels.selector(names.SLURMDBD, accounting.name),
        ),
    )


def statefulset(accounting: Accounting, files: Files) -> Tree:
    """The StatefulSet of slurmdbd: never two at a time on one database."""
    template = accounting.spec.template
    inherited = parts.inherited(accounting.metadata)
    user = {"labels": template.labels, "annotations": template.annotations} if template else None
    ours = {"labels": labels.slurmdbd(accounting.name)}
    name = names.accounting(accounting.name)
    return parts.object_tree(
        "apps/v1",
        "StatefulSet",
        parts.metadata(name, accounting.metadata, KIND, merge_metadata(inherited, user, ours)),
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 0,
            # Ordered, a pod that cannot start would keep its own correction from being rolled out.
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": parts.selected(labels.selector(names.SLURMDBD, accounting.name)),
            "template": {
                "metadata": merge_metadata(inherited, user, ours, {"annotations": _annotations(files)}),
                "spec": pod_spec(accounting),
            },
        },
    )


def pod_spec(accounting: Accounting) -> Tree:
    """The slurmdbd pod, with the user's template over it."""
    spec = accounting.spec
    base: Tree = {
        "automountServiceAccountToken": False,
        "securityContext": {**parts.nonroot(names.SLURM_UID), "fsGroup": names.SLURM_UID},
        "containers": [merge_container(_slurmdbd(), spec.slurmdbd or {})],
        "volumes": [parts.projected(names.VOLUME_ETC, 0o600, _sources(accounting)), parts.memory(names.VOLUME_RUN)],
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def _slurmdbd() -> Tree:
    return {
        "name": names.SLURMDBD,
        "ports": [{"name": names.SLURMDBD, "containerPort": names.SLURMDBD_PORT, "protocol": "TCP"}],
        # It listens once the database answers and is converted. No liveness probe: a database that is away is no
        # reason to end slurmdbd, and a conversion must never be cut short.
        "startupProbe": parts.tcp_probe(names.SLURMDBD_PORT, period=1, failures=CONVERSION_HOURS * 3600),
        "readinessProbe": parts.tcp_probe(names.SLURMDBD_PORT, period=10, failures=3),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": parts.nonroot(names.SLURM_UID),
        "volumeMounts": [
            {"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True},
            {"name": names.VOLUME_RUN, "mountPath": names.RUN_DIR},
        ],
    }


def _sources(accounting: Accounting) -> list[Tree]:
    spec = accounting.spec
    refs = ((spec.slurmKeyRef, names.SLURM_KEY_FILE), (spec.jwt_ref, names.JWT_KEY_FILE))
    sources = [parts.secret_file(names.accounting(accounting.name), CONF, CONF)]
    sources += [parts.secret_file(ref.name, ref.key, file) for ref, file in refs if ref is not None]
    if jwks := spec.jwksKeyRef:
        sources.append(parts.configmap_file(jwks.name, jwks.key, names.JWKS_FILE))
    return sources


def _annotations(files: Files) -> Mapping[str, str]:
    conf_hash = digest.of_values({CONF: files.conf.encode()})
    return {
        names.SLURM_KEY_HASH: files.slurm_key,
        names.JWT_KEY_HASH: files.jwt_key,
        names.SLURMDBD_CONF_HASH: conf_hash,
        names.RESTART_HASH: digest.of_files({CONF: files.conf, names.JWKS_FILE: files.jwks}),
        names.DEFAULT_CONTAINER: names.SLURMDBD,
    }


def _required(accounting: Accounting) -> dict[str, str]:
    """Comma lists that slurmdbd cannot do without, whatever a user adds to them."""
    jwks = f",jwks={names.ETC_DIR}/{names.JWKS_FILE}" if accounting.spec.jwksKeyRef else ""
    return {
        "AuthAltParameters": f"jwt_key={names.ETC_DIR}/{names.JWT_KEY_FILE}{jwks}",
        "AuthInfo": "use_client_ids",
    }


def _section(title: str, *lines: str) -> str:
    return "\n".join(("#", f"### {title} ###", *lines)) + "\n" if lines else ""
