"""A LoginSet's objects: the Deployment of login pods and the Service in front of sshd."""

from typing import Any

import msgspec

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.meta import tree as plain
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build.common import digest, parts
from kubeslurm.build.common.merge import merge_container, merge_metadata, merge_pod_spec, merge_service_spec
from kubeslurm.build.controller import config
from kubeslurm.build.login import ssh

KIND = "LoginSet"
SSSD_CONF = "sssd.conf"
RAW_DIR = "/mnt/slurm"
READY_DIR = "/mnt/etc/slurm"

# Secrets are mounted for root; sackd runs as Slurm's user and insists on owning its key.
INITCONF_SCRIPT = f"""\
set -eu
for file in {RAW_DIR}/*.conf {RAW_DIR}/*.key; do
  [ -e "$file" ] || continue
  copy={READY_DIR}/${{file##*/}}
  cp -L "$file" "$copy"
  chown {names.SLURM_UID}:{names.SLURM_UID} "$copy"
  case $copy in *.key) chmod 600 "$copy" ;; *) chmod 644 "$copy" ;; esac
done
ls -l {READY_DIR}
"""
# Ready is who can submit: sshd runs, and slurmctld answers with the credentials of sackd.
READY_SCRIPT = """\
test -S /run/slurm/sack.socket && kill -0 "$(cat /run/sshd.pid)" && sinfo --noheader --format=%P > /dev/null"""


class Stamps(msgspec.Struct, frozen=True):
    """Hashes of the files that a login pod sees only as they were when it started."""

    host_keys: str = ""
    sshd: str = ""
    sssd: str = ""
    slurm_key: str = ""


def selector(loginset: LoginSet) -> str:
    """The label selector of the pods as autoscalers want it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.selector(names.LOGIN, loginset.name).items()))


def service(loginset: LoginSet) -> Tree:
    """The one address of all replicas."""
    asked = loginset.spec.service
    port = parts.service_port(names.LOGIN, (asked and asked.port) or names.SSH_PORT, asked.nodePort if asked else 0)
    layers = merge_metadata(
        parts.inherited(loginset.metadata),
        {"labels": asked.labels, "annotations": asked.annotations} if asked else None,
        {"labels": labels.login(loginset.name)},
    )
    return parts.object_tree(
        "v1",
        "Service",
        parts.metadata(loginset.name, loginset.metadata, KIND, layers),
        spec=merge_service_spec(
            {"type": "ClusterIP", **((asked and asked.spec) or {})}, port, labels.selector(names.LOGIN, loginset.name)
        ),
    )


def deployment(loginset: LoginSet, controller: Controller, stamps: Stamps, domain: str) -> Tree:
    """The Deployment of login pods."""
    spec, template = loginset.spec, loginset.spec.template
    inherited = parts.inherited(loginset.metadata)
    user = {"labels": template.labels, "annotations": template.annotations} if template else None
    ours = {"labels": labels.login(loginset.name)}
    return parts.object_tree(
        "apps/v1",
        "Deployment",
        parts.metadata(loginset.name, loginset.metadata, KIND, merge_metadata(inherited, user, ours)),
        spec={
            "replicas": spec.replicas,
            "revisionHistoryLimit": 0,
            **({"strategy": strategy} if spec.strategy and (strategy := plain(spec.strategy)) else {}),
            "selector": parts.selected(labels.selector(names.LOGIN, loginset.name)),
            "template": {
                "metadata": merge_metadata(inherited, user, ours, {"annotations": _annotations(stamps, controller)}),
                "spec": pod_spec(loginset, controller, domain),
            },
        },
    )


def pod_spec(loginset: LoginSet, controller: Controller, domain: str) -> Tree:
    """One login pod, with the user's template over it."""
    spec = loginset.spec
    container = merge_container(_login(controller), spec.login or {})
    _listen_where_asked(container, spec.login or {})
    workers = names.full_host(names.workers_service(controller.name), loginset.namespace, domain)
    base: Tree = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Lets users reach workers by their Slurm names.
        "dnsConfig": {"searches": [workers]},
        "initContainers": [merge_container(_initconf(container.get("image", "")), spec.initconf or {})],
        "containers": [container],
        "volumes": _volumes(loginset, controller),
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def _login(controller: Controller) -> Tree:
    return {
        "name": names.LOGIN,
        "env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {config.conf_server(controller)}"}],
        "ports": [{"name": names.LOGIN, "containerPort": names.SSH_PORT, "protocol": "TCP"}],
        # Quick to notice a new pod; patient afterwards, so that a restart of slurmctld locks nobody out.
        "startupProbe": _ready_probe(period=2, failures=1800),
        "readinessProbe": _ready_probe(period=10, failures=6),
        "volumeMounts": [
            {"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True},
            {"name": names.VOLUME_SACKD, "mountPath": names.SACKD_DIR},
            *ssh.mounts(),
            {
                "name": names.VOLUME_SSSD,
                "mountPath": f"/etc/sssd/{SSSD_CONF}",
                "subPath": SSSD_CONF,
                "readOnly": True,
            },
        ],
    }


def _ready_probe(*, period: int, failures: int) -> Tree:
    command = ["sh", "-c", READY_SCRIPT]
    return {"exec": {"command": command}, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}


def _listen_where_asked(container: Tree, user: Tree) -> None:
    """A port named `login` in the user's container replaces ours: sshd may listen elsewhere."""
    asked: list[dict[str, Any]] = [port for port in user.get("ports") or () if port.get("name") == names.LOGIN]
    if asked and asked[0].get("containerPort"):
        others = [port for port in container["ports"] if port.get("name") != names.LOGIN]
        container["ports"] = [{"protocol": "TCP", **asked[0]}, *others]


def _initconf(image: str) -> Tree:
    return {
        "name": names.INITCONF,
        "image": image,
        "command": ["sh", "-c", INITCONF_SCRIPT],
        "env": [{"name": "SLURM_USER", "value": names.SLURM_USER}],
        "volumeMounts": [
            {"name": names.VOLUME_ETC, "mountPath": READY_DIR},
            {"name": names.VOLUME_CONFIG, "mountPath": RAW_DIR, "readOnly": True},
        ],
    }


def _volumes(loginset: LoginSet, controller: Controller) -> list[Tree]:
    key, users = controller.spec.slurmKeyRef, loginset.spec.sssdConfRef
    keys = [parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE)] if key else []
    sssd = {"secret": {"name": users.name, "items": [{"key": users.key, "path": SSSD_CONF, "mode": 0o600}]}}
    return [
        parts.memory(names.VOLUME_ETC),
        parts.memory(names.VOLUME_SACKD),
        parts.projected(names.VOLUME_CONFIG, 0o600, keys),
        ssh.host_key_volume(loginset),
        ssh.config_volume(loginset),
        parts.projected(names.VOLUME_SSSD, 0o600, [sssd]),
    ]


def _annotations(stamps: Stamps, controller: Controller) -> dict[str, str]:
    return {
        names.SSH_HOST_KEYS_HASH: stamps.host_keys,
        names.SSHD_CONF_HASH: stamps.sshd,
        names.SSSD_CONF_HASH: stamps.sssd,
        names.SLURM_KEY_HASH: stamps.slurm_key,
        names.RESTART_HASH: digest.of_files({"conf-server": config.conf_server(controller)}),
        names.DEFAULT_CONTAINER: names.LOGIN,
    }
