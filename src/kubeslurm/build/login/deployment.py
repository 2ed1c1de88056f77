"""The Deployment of login pods."""

from collections.abc import Mapping
from typing import Any

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import DEPLOYMENT
from kubeslurm.api.meta import Tree
from kubeslurm.api.meta import tree as plain
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.build import scripts
from kubeslurm.build.common import digest
from kubeslurm.build.common.containers import tcp_port
from kubeslurm.build.common.merge import merge_container, merge_pod_spec, pruned
from kubeslurm.build.common.metadata import label_selector, object_tree, workload_metadata
from kubeslurm.build.common.volumes import PRIVATE, etc_mount, file_mount, key_files, memory, projected
from kubeslurm.build.controller.service import conf_server
from kubeslurm.build.login import ssh

SSSD_CONF = "sssd.conf"
# The script copies the files from the first directory to the second.
MOUNTED_DIR = "/mnt/slurm"
COPIED_DIR = "/mnt/etc/slurm"
INITCONF_SCRIPT = scripts.read("login-initconf.sh")
READY_SCRIPT = scripts.read("login-ready.sh").rstrip("\n")
PRE_STOP = scripts.read("login-pre-stop.sh")
# How long a pod that is to go waits for its users, unless the template says otherwise: one day.
GRACE = 24 * 60 * 60


def deployment(loginset: LoginSet, controller: Controller, hashes: Mapping[str, str], domain: str) -> Tree:
    """The Deployment of login pods; another value in `hashes` (annotation -> hash) replaces them."""
    spec = loginset.spec
    annotations = {
        **hashes,
        names.RESTART_HASH: digest.of_files({"conf-server": conf_server(controller)}),
        names.DEFAULT_CONTAINER: names.LOGIN,
    }
    metadata, pod_metadata = workload_metadata(
        loginset, loginset.name, spec.template, labels.login(loginset.name), annotations
    )
    return object_tree(
        DEPLOYMENT,
        metadata,
        spec={
            "replicas": spec.replicas,
            "revisionHistoryLimit": 0,
            **({"strategy": strategy} if spec.strategy and (strategy := plain(spec.strategy)) else {}),
            "selector": label_selector(labels.selector(names.LOGIN, loginset.name)),
            "template": {"metadata": pod_metadata, "spec": pod_spec(loginset, controller, domain)},
        },
    )


def requested(loginset: LoginSet, controller: Controller, hashes: Mapping[str, str]) -> Tree:
    """What users asked for of the pods: only a change of this replaces running ones, and so ends sessions."""
    spec = loginset.spec
    given = {
        "login": spec.login,
        "initconf": spec.initconf,
        "template": spec.template and plain(spec.template),
        "sssdConfRef": plain(spec.sssdConfRef),
        "keys": key_files(controller.spec.slurmKeyRef),
        "slurmctld": conf_server(controller),
        # In place of a hash of the files, which a release may word differently.
        "extraSshdConfig": spec.extraSshdConfig,
        "rootSshAuthorizedKeys": spec.rootSshAuthorizedKeys,
        "files": {name: hash_ for name, hash_ in hashes.items() if name != names.SSHD_CONF_HASH},
    }
    return pruned(given)


def pod_spec(loginset: LoginSet, controller: Controller, domain: str) -> Tree:
    """One login pod, with the user's template over it."""
    spec = loginset.spec
    container = merge_container(_login(controller), spec.login or {})
    _use_given_port(container, spec.login or {})
    workers = names.full_host(names.workers_service(controller.name), loginset.namespace, domain)
    base: Tree = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Lets users reach workers by their Slurm names.
        "dnsConfig": {"searches": [workers]},
        "terminationGracePeriodSeconds": GRACE,
        "initContainers": [merge_container(_initconf(container.get("image", "")), spec.initconf or {})],
        "containers": [container],
        "volumes": _volumes(loginset, controller),
    }
    return merge_pod_spec(base, (spec.template and spec.template.spec) or {})


def _login(controller: Controller) -> Tree:
    return {
        "name": names.LOGIN,
        "env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {conf_server(controller)}"}],
        "ports": [tcp_port(names.LOGIN, names.SSH_PORT)],
        # Quick to notice a new pod; patient afterwards, so that a restart of slurmctld locks nobody out.
        "startupProbe": _ready_probe(period=2, failures=1800),
        "readinessProbe": _ready_probe(period=10, failures=6),
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", PRE_STOP]}}},
        "volumeMounts": [
            etc_mount(),
            {"name": names.VOLUME_SACKD, "mountPath": names.SACKD_DIR},
            *ssh.mounts(),
            file_mount(names.VOLUME_SSSD, f"/etc/sssd/{SSSD_CONF}"),
        ],
    }


def _ready_probe(*, period: int, failures: int) -> Tree:
    command = ["sh", "-c", READY_SCRIPT]
    return {"exec": {"command": command}, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}


def _use_given_port(container: Tree, user: Tree) -> None:
    """A port named `login` in the user's container replaces ours: sshd may listen elsewhere."""
    given: list[dict[str, Any]] = [port for port in user.get("ports") or () if port.get("name") == names.LOGIN]
    if given and given[0].get("containerPort"):
        others = [port for port in container["ports"] if port.get("name") != names.LOGIN]
        container["ports"] = [{"protocol": "TCP", **given[0]}, *others]


def _initconf(image: str) -> Tree:
    return {
        "name": names.INITCONF,
        "image": image,
        "command": ["sh", "-c", INITCONF_SCRIPT],
        "env": [{"name": "SLURM_USER", "value": names.SLURM_USER}],
        "volumeMounts": [
            {"name": names.VOLUME_ETC, "mountPath": COPIED_DIR},
            {"name": names.VOLUME_CONFIG, "mountPath": MOUNTED_DIR, "readOnly": True},
        ],
    }


def _volumes(loginset: LoginSet, controller: Controller) -> list[Tree]:
    users = loginset.spec.sssdConfRef
    sssd = {"secret": {"name": users.name, "items": [{"key": users.key, "path": SSSD_CONF, "mode": PRIVATE}]}}
    return [
        memory(names.VOLUME_ETC),
        memory(names.VOLUME_SACKD),
        projected(names.VOLUME_CONFIG, key_files(controller.spec.slurmKeyRef)),
        ssh.host_key_volume(loginset),
        ssh.config_volume(loginset),
        projected(names.VOLUME_SSSD, [sssd]),
    ]
