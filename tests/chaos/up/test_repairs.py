"""Repairs by `kubeslurm up` that take minutes: whole releases, namespaces and definitions are gone."""

import subprocess
from collections.abc import Callable

import pytest

from kubeslurm.api.kinds import SLURM_KINDS
from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.access import local_access
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for
from tests.up.support import NAME, PROGRAM, environment, kubeslurm, up


def uninstall_slurm(cluster: Kubernetes) -> None:
    argv = [helm._program(), "uninstall", releases.SLURM, f"--namespace={releases.SLURM_NAMESPACE}"]
    subprocess.run([*argv, f"--kubeconfig={cluster.kubeconfig}"], check=True, timeout=300)


def delete_slurm_namespace(cluster: Kubernetes) -> None:
    cluster.kubectl("delete", "namespace", releases.SLURM_NAMESPACE, "--wait=false")


def delete_operator_namespace(cluster: Kubernetes) -> None:
    cluster.kubectl("delete", "namespace", releases.OPERATOR_NAMESPACE, "--wait=false")


def delete_crds(cluster: Kubernetes) -> None:
    crds = [f"crd/{kind.plural}.{kind.group}" for kind in SLURM_KINDS]
    cluster.kubectl("delete", *crds, "--wait=false")


def delete_records(cluster: Kubernetes) -> None:
    cluster.kubectl("delete", "secrets", "--selector=owner=helm", f"--namespace={releases.SLURM_NAMESPACE}")
    cluster.kubectl("delete", "service/slurm-mariadb", f"--namespace={releases.SLURM_NAMESPACE}")


BREAKAGES = (uninstall_slurm, delete_slurm_namespace, delete_operator_namespace, delete_crds, delete_records)


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda each: each.__name__)
@pytest.mark.usefixtures("first_output")
def test_up_installs_again_what_is_gone(cluster: Kubernetes, breakage: Callable[[Kubernetes], None]) -> None:
    up(cluster, "--name", NAME)
    breakage(cluster)
    output = up(cluster, "--name", NAME)
    assert set(Workers(Slurm(cluster)).both()) <= set(output.split())
    Slurm(cluster).wait_until_idle(2)


@pytest.mark.parametrize("moment", ["starting the cluster", "install slurm", "wait for the workers"])
@pytest.mark.usefixtures("first_output")
def test_an_up_that_was_killed_at_any_moment_is_continued_by_the_next(cluster: Kubernetes, moment: str) -> None:
    done = kubeslurm("down", "--name", NAME, cluster=cluster)
    assert "is down" in done.stdout, done.stderr
    values = cluster.home.path / "other-values.json"
    values.write_text('{"controller": {"extraConf": "# other values"}}')
    argv = [PROGRAM, "up", "--name", NAME, "--values", str(values)]
    with subprocess.Popen(argv, env=environment(cluster), stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        for line in killed.stderr:
            if line.startswith(moment):
                break
        killed.kill()
    up(cluster, "--name", NAME)
    records = helm.records(local_access(cluster))
    assert {record.status for record in records.values()} == {helm.DEPLOYED}
    wait_for("two idle workers", lambda: set(Slurm(cluster).nodes().values()) == {"idle"})
