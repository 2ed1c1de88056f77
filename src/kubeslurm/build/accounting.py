"""slurmdbd: its configuration in a Secret, its Service and its StatefulSet."""

import base64
from collections.abc import Mapping

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import SECRET, STATEFULSET
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.accounting import Accounting
from kubeslurm.build.common import digest
from kubeslurm.build.common.conf_text import auth_parameters, section
from kubeslurm.build.common.containers import nonroot, tcp_port, tcp_probe
from kubeslurm.build.common.merge import merge_container, merge_pod_spec
from kubeslurm.build.common.metadata import (
    child_metadata,
    given,
    inherited,
    label_selector,
    object_tree,
    workload_metadata,
)
from kubeslurm.build.common.services import daemon_service, port_of
from kubeslurm.build.common.volumes import configmap_file, etc_mount, key_files, memory, projected, secret_file
from kubeslurm.slurm import conf

CONF = "slurmdbd.conf"
# A new release of Slurm converts the whole database before it listens; stopped in between it leaves a broken one.
CONVERSION_HOURS = 24


class Files(msgspec.Struct, frozen=True):
    """What slurmdbd reads only when it starts: texts, and hashes of the keys. A change replaces the pod."""

    conf: str
    slurm_key: str = ""
    jwt_key: str = ""
    jwks: str = ""


def password_of(raw: bytes) -> str | None:
    """The password as slurmdbd.conf must have it; None when the file cannot carry it."""
    try:
        return conf.written(raw.decode().rstrip("\n"))
    except UnicodeDecodeError:
        return None


def slurmdbd_conf(accounting: Accounting, password: str) -> str:
    """slurmdbd.conf in the order and form that existing clusters have; the password is one of `password_of`."""
    extra = accounting.spec.extraConf
    # Comma lists that slurmdbd cannot do without, whatever a user adds to them.
    required = auth_parameters(jwks=accounting.spec.jwksKeyRef is not None)
    sections = (
        section(
            "GENERAL",
            f"DbdHost={names.accounting(accounting.name)}-0",
            f"DbdPort={names.SLURMDBD_PORT}",
            f"SlurmUser={names.SLURM_USER}",
        ),
        section(
            "PLUGINS & PARAMETERS",
            "AuthType=auth/slurm",
            "AuthAltTypes=auth/jwt",
            *(f"{key}={value}" for key, value in required.items()),
        ),
        _storage(accounting, password),
        # In the foreground the log goes to stderr as well, which is where Kubernetes looks for it.
        section("LOGGING", "LogFile=/dev/null"),
        section("EXTRA CONFIG", extra.rstrip("\n")) if extra else "",
        section("MERGED CONFIG", *conf.merged(extra, required)),
    )
    return "".join(sections)


def _storage(accounting: Accounting, password: str) -> str:
    storage = accounting.spec.storageConfig
    if storage is None:
        return ""
    return section(
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
    own = {"labels": labels.slurmdbd(accounting.name)}
    return object_tree(
        SECRET,
        child_metadata(accounting, names.accounting(accounting.name), inherited(accounting), own),
        data={CONF: base64.b64encode(text.encode()).decode()},
    )


def service(accounting: Accounting) -> Tree:
    """The one address of slurmdbd. The pod always listens on slurmdbd's own port."""
    spec, own = accounting.spec.service, {"labels": labels.slurmdbd(accounting.name)}
    return daemon_service(
        child_metadata(accounting, names.accounting(accounting.name), inherited(accounting), given(spec), own),
        spec,
        names.SLURMDBD,
        port_of(spec, names.SLURMDBD_PORT),
        labels.selector(names.SLURMDBD, accounting.name),
    )


def statefulset(accounting: Accounting, files: Files) -> Tree:
    """The StatefulSet of slurmdbd: never two at a time on one database."""
    name = names.accounting(accounting.name)
    metadata, pod_metadata = workload_metadata(
        accounting, name, accounting.spec.template, labels.slurmdbd(accounting.name), _annotations(files)
    )
    return object_tree(
        STATEFULSET,
        metadata,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 0,
            # Ordered, a pod that cannot start would keep its own correction from being rolled out.
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": label_selector(labels.selector(names.SLURMDBD, accounting.name)),
            "template": {"metadata": pod_metadata, "spec": pod_spec(accounting)},
        },
    )


def pod_spec(accounting: Accounting) -> Tree:
    """The slurmdbd pod, with the user's template over it."""
    spec = accounting.spec
    base: Tree = {
        "automountServiceAccountToken": False,
        "securityContext": {**nonroot(names.SLURM_UID), "fsGroup": names.SLURM_UID},
        "containers": [merge_container(_slurmdbd(), spec.slurmdbd or {})],
        "volumes": [projected(names.VOLUME_ETC, _sources(accounting)), memory(names.VOLUME_RUN)],
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def _slurmdbd() -> Tree:
    return {
        "name": names.SLURMDBD,
        "ports": [tcp_port(names.SLURMDBD, names.SLURMDBD_PORT)],
        # It listens once the database answers and is converted. No liveness probe: an unreachable database is no
        # reason to restart slurmdbd, and a conversion must never be interrupted.
        "startupProbe": tcp_probe(names.SLURMDBD_PORT, period=1, failures=CONVERSION_HOURS * 3600),
        "readinessProbe": tcp_probe(names.SLURMDBD_PORT, period=10, failures=3),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": nonroot(names.SLURM_UID),
        "volumeMounts": [
            etc_mount(),
            {"name": names.VOLUME_RUN, "mountPath": names.RUN_DIR},
        ],
    }


def _sources(accounting: Accounting) -> list[Tree]:
    spec = accounting.spec
    sources = [
        secret_file(names.accounting(accounting.name), CONF, CONF),
        *key_files(spec.slurmKeyRef, spec.jwt_ref),
    ]
    if jwks := spec.jwksKeyRef:
        sources.append(configmap_file(jwks.name, jwks.key, names.JWKS_FILE))
    return sources


def _annotations(files: Files) -> Mapping[str, str]:
    return {
        names.SLURM_KEY_HASH: files.slurm_key,
        names.JWT_KEY_HASH: files.jwt_key,
        names.SLURMDBD_CONF_HASH: digest.of_values({CONF: files.conf.encode()}),
        names.RESTART_HASH: digest.of_files({CONF: files.conf, names.JWKS_FILE: files.jwks}),
        names.DEFAULT_CONTAINER: names.SLURMDBD,
    }
