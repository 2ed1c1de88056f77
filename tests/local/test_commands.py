"""The commands `kubeslurm local ...`."""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kubeslurm.cli.app import app
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import buildah, store
from kubeslurm.local.images.builder import KEPT_TAGS
from tests.support.kubernetes import run

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: typed, namespace: default}}"


@pytest.fixture(autouse=True)
def _separate_state(state_home: Path) -> None:
    """Do not use the clusters of the user who runs the tests."""


def local(*args: str) -> Result:
    return CliRunner().invoke(app, ["local", *args])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["up", "--name", "Bad_Name"], "not a valid name for a cluster"),
        (
            ["up", "--node", "gpu:colour=red", "--name", "x"],
            "'colour=red' in --node 'gpu:colour=red' is not valid",
        ),
        (["up", "--nodes", "-1", "--name", "x"], "cannot have -1 nodes"),
        (["up", "--nodes", "500", "--name", "x"], "--fake-nodes"),
        (["status", "--name", "missing"], "is not running. Start it with `kubeslurm local up --name missing`"),
        (["kubeconfig", "--name", "missing"], "There is no cluster 'missing'"),
        (["kubectl", "--name", "missing", "get", "pods"], "is not running"),
        (["logs", "etcd", "--name", "missing"], "There is no log of 'etcd'"),
        (["node", "kill", "node-1", "--name", "missing"], "There is no cluster 'missing'"),
        (["image", "push", "localhost/x:1", "--name", "missing"], "is not running"),
        (["image", "build", "nothing"], "There is no "),
        (["image", "build", "x", "--containerfile", "/nowhere/File"], "There is no /nowhere/File."),
    ],
)
def test_a_wrong_command_prints_one_error_without_a_traceback(args: list[str], message: str) -> None:
    result = local(*args)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_node_is_an_error_that_lists_the_nodes(cluster: Cluster) -> None:
    result = local("node", "kill", "node-9", "--name", cluster.name)
    assert result.exit_code == 1
    assert "has no node 'node-9'. Its nodes are: node-1, node-2, gpu-1." in result.stderr


def test_down_succeeds_if_the_cluster_is_not_running() -> None:
    result = local("down", "--name", "missing")
    assert (result.exit_code, result.stdout) == (0, "The cluster 'missing' was not running.\n")


def test_an_image_is_built_from_any_containerfile_and_its_newest_tags_are_kept(tmp_path: Path, image_name: str) -> None:
    (tmp_path / "Other").write_text("FROM scratch\nCOPY file /file\n")
    for tag in range(KEPT_TAGS + 1):
        (tmp_path / "file").write_text(f"{image_name} {tag}")
        result = local("image", "build", image_name, f"--tag={tag}", "--containerfile", str(tmp_path / "Other"))
        assert (result.exit_code, result.stdout) == (0, f"localhost/{image_name}:{tag}\n")
    kept = re.findall(rf"localhost/{image_name}:\d+", local("image", "list").stdout)
    assert kept == [f"localhost/{image_name}:{tag}" for tag in range(KEPT_TAGS, 0, -1)]


@pytest.fixture
def image_name() -> Iterator[str]:
    """A unique name for images; they are deleted afterwards."""
    name = f"test-image-{uuid.uuid4().hex[:8]}"
    yield name
    if built := [str(image) for image in store.list_images() if image.name == name]:
        buildah.run(Tasks(), "rmi", *built)


def program(*args: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command as a process: some commands replace themselves by another program."""
    argv = [str(Path(sys.executable).with_name("kubeslurm")), "local", *args]
    return run(argv, stdin=stdin)


@pytest.mark.parametrize(
    ("args", "stdin", "output"),
    [
        (["kubectl", "--name", "shared", "get", "nodes", "--output=name"], "", "node/gpu-1\n"),
        (["kubectl", "--name", "shared", "create", "--dry-run=server", "-f-"], CONFIG_MAP, "configmap/typed created"),
        (["shell", "--name", "shared", "node-2"], "echo $HOSTNAME $((6 * 7))\n", "node-2 42\n"),
        (["shell", "--name", "shared", "node-2", "--", "cat", "/proc/sys/kernel/hostname"], "", "node-2\n"),
        (["logs", "--name", "shared", "--lines", "9999", "node-1/kubelet"], "", "node-1"),
        (["image", "push", "--name", "shared", "localhost/testbox:1"], "", "sha256:"),
        (["image", "list"], "", "localhost/testbox:1"),
        (["doctor"], "", "ok"),
        (["status", "--name", "shared"], "", "gpu-1"),
        (["kubeconfig", "--name", "shared"], "", "/kubeconfig\n"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("cluster")
def test_commands_print_the_expected_output(args: list[str], stdin: str, output: str) -> None:
    done = program(*args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert output in done.stdout


def test_a_node_is_stopped_and_started_by_command(cluster: Cluster) -> None:
    for action, state in (("stop", "stopped"), ("start", "running")):
        done = program("node", action, "--name", cluster.name, "node-2")
        assert done.returncode == 0, done.stderr
        assert cluster.node("node-2").status.state == state
    cluster.kubectl("wait", "--for=condition=Ready", "node/node-2", "--timeout=300s")


def test_status_shows_every_node_and_component(cluster: Cluster) -> None:
    result = local("status", "--name", cluster.name)
    assert result.exit_code == 0
    for name in ("gpu-1", "etcd", "kube-apiserver", "node-2/kubelet", cluster.registry):
        assert name in result.stdout


def test_up_does_not_change_a_running_cluster(cluster: Cluster) -> None:
    result = local("up", "--nodes", "7", "--name", cluster.name)
    assert result.exit_code == 0
    assert "is running already; nothing was changed" in result.stdout


def test_kubeconfig_prints_only_a_path(cluster: Cluster) -> None:
    assert local("kubeconfig", "--name", cluster.name).stdout == f"{cluster.kubeconfig}\n"
