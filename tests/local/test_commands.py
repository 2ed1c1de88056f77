"""The commands, as users type them."""

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
from kubeslurm.local.images import build as images
from kubeslurm.local.images import buildah
from kubeslurm.local.images.build import KEPT

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: typed, namespace: default}}"


@pytest.fixture(autouse=True)
def _apart(state_home: Path) -> None:
    """Never the clusters of whoever runs the tests."""


def local(*args: str) -> Result:
    return CliRunner().invoke(app, ["local", *args])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["up", "--name", "Bad_Name"], "no name for a cluster"),
        (
            ["up", "--node", "gpu:colour=red", "--name", "x"],
            "'colour=red' in --node 'gpu:colour=red' is not understood",
        ),
        (["up", "--nodes", "-1", "--name", "x"], "cannot have -1 nodes"),
        (["up", "--nodes", "500", "--name", "x"], "--fake-nodes"),
        (["status", "--name", "nobody"], "is not running. Start it with `kubeslurm local up --name nobody`"),
        (["kubeconfig", "--name", "nobody"], "There is no cluster 'nobody'"),
        (["kubectl", "--name", "nobody", "get", "pods"], "is not running"),
        (["logs", "etcd", "--name", "nobody"], "There is no log of 'etcd'"),
        (["node", "kill", "node-1", "--name", "nobody"], "There is no cluster 'nobody'"),
        (["image", "push", "localhost/x:1", "--name", "nobody"], "is not running"),
        (["image", "build", "nothing"], "There is no "),
        (["image", "build", "x", "--containerfile", "/nowhere/File"], "There is no /nowhere/File."),
    ],
)
def test_mistakes_get_one_clear_sentence(args: list[str], said: str) -> None:
    result = local(*args)
    assert result.exit_code == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_node_is_named_with_those_there_are(cluster: Cluster) -> None:
    result = local("node", "kill", "node-9", "--name", cluster.name)
    assert result.exit_code == 1
    assert "has no node 'node-9'. Its nodes are: node-1, node-2, gpu-1." in result.stderr


def test_down_of_what_does_not_run_is_no_error() -> None:
    result = local("down", "--name", "nobody")
    assert (result.exit_code, result.stdout) == (0, "The cluster 'nobody' was not running.\n")


def test_an_image_is_built_from_any_containerfile_and_its_newest_tags_stay(tmp_path: Path, scratchy: str) -> None:
    (tmp_path / "Other").write_text("FROM scratch\nCOPY file /file\n")
    for tag in range(KEPT + 1):
        (tmp_path / "file").write_text(f"{scratchy} {tag}")
        result = local("image", "build", scratchy, f"--tag={tag}", "--containerfile", str(tmp_path / "Other"))
        assert (result.exit_code, result.stdout) == (0, f"localhost/{scratchy}:{tag}\n")
    kept = re.findall(rf"localhost/{scratchy}:\d+", local("image", "list").stdout)
    assert kept == [f"localhost/{scratchy}:{tag}" for tag in range(KEPT, 0, -1)]


@pytest.fixture
def scratchy() -> Iterator[str]:
    """A name for images that no earlier run can have used; they are gone afterwards."""
    name = f"scratchy-{uuid.uuid4().hex[:8]}"
    yield name
    if made := [str(image) for image in images.list() if image.name == name]:
        buildah.call(Tasks(), "rmi", *made)


def program(*args: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """The command as a process: some of them turn into another program."""
    argv = [str(Path(sys.executable).with_name("kubeslurm")), "local", *args]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, timeout=500)


@pytest.mark.parametrize(
    ("args", "stdin", "said"),
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
def test_commands_do_what_they_say(args: list[str], stdin: str, said: str) -> None:
    done = program(*args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_a_node_is_stopped_and_started_by_command(cluster: Cluster) -> None:
    for act, state in (("stop", "stopped"), ("start", "running")):
        done = program("node", act, "--name", cluster.name, "node-2")
        assert done.returncode == 0, done.stderr
        assert cluster.node("node-2").condition.state == state
    cluster.kubectl("wait", "--for=condition=Ready", "node/node-2", "--timeout=300s")


def test_status_shows_every_node_and_component(cluster: Cluster) -> None:
    result = local("status", "--name", cluster.name)
    assert result.exit_code == 0
    for name in ("gpu-1", "etcd", "kube-apiserver", "node-2/kubelet", cluster.registry):
        assert name in result.stdout


def test_up_says_when_the_cluster_runs_already(cluster: Cluster) -> None:
    result = local("up", "--nodes", "7", "--name", cluster.name)
    assert result.exit_code == 0
    assert "is running already; nothing was changed" in result.stdout


def test_kubeconfig_prints_a_path_and_nothing_else(cluster: Cluster) -> None:
    assert local("kubeconfig", "--name", cluster.name).stdout == f"{cluster.kubeconfig}\n"
