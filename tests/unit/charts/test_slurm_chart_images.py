"""Which images the slurm chart asks for."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parents[3] / "charts" / "slurm"
HELM = Path(sys.executable).with_name("helm")
SLINKY = "ghcr.io/slinkyproject"


def render(values: dict[str, Any], chart: Path = CHART) -> dict[tuple[str, str], dict[str, Any]]:
    argv = [str(HELM), "template", "slurm", str(chart), "--values=-"]
    done = subprocess.run(argv, input=json.dumps(values), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    trees = [tree for tree in yaml.safe_load_all(done.stdout) if tree]
    return {(tree["kind"], tree["metadata"]["name"]): tree for tree in trees}


def slurmctld(image: Any) -> str:
    image_: str = render({"controller": {"slurmctld": {"image": image}}})["Controller", "slurm"]["spec"]["slurmctld"][
        "image"
    ]
    return image_


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"repository": "r/x", "tag": "1"}, "r/x:1"),
        ({"repository": "r/x", "tag": "1", "digest": "sha256:0"}, "r/x@sha256:0"),
        ({"repository": "r/x"}, "r/x:26.05"),
        ("r/x:2", "r/x:2"),
    ],
)
def test_images_are_text_or_repository_with_tag_or_digest(image: Any, expected: str) -> None:
    assert slurmctld(image) == expected


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"tag": "25.11-ubuntu24.04"}, f"{SLINKY}/slurmctld:25.11-ubuntu24.04"),
        ({"tag": "26.05.1-rockylinux9"}, f"{SLINKY}/slurmctld:26.05.1-rockylinux9"),
        ({"repository": f"{SLINKY}/slurmctld"}, f"{SLINKY}/slurmctld:26.05-ubuntu26.04"),
        ({"repository": "r/slinkyproject/slurmctld"}, "r/slinkyproject/slurmctld:26.05-ubuntu26.04"),
        ({"repository": "r/slurmctld", "tag": "26.05-ubuntu26.04"}, "r/slurmctld:26.05-ubuntu26.04"),
        ({"tag": "26.05.2"}, "ghcr.io/kubeslurm/slurmctld:26.05.2"),
    ],
)
def test_the_other_half_of_an_image_comes_from_the_same_set(image: Any, expected: str) -> None:
    assert slurmctld(image) == expected


def test_a_tag_alone_for_the_log_is_one_of_the_image_that_slinky_uses() -> None:
    values = {
        "controller": {"logfile": {"image": {"tag": "3.20"}}},
        "loginsets": {"a": {"initconf": {"image": {"tag": 3}}}},
    }
    objects = render(values)
    assert objects["Controller", "slurm"]["spec"]["logfile"]["image"] == "docker.io/library/alpine:3.20"
    assert objects["LoginSet", "slurm-login-a"]["spec"]["initconf"]["image"] == "docker.io/library/alpine:3"
    assert "image" not in render({})["Controller", "slurm"]["spec"]["logfile"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, "ghcr.io/kubeslurm/slurmd-ssh:26.05"),
        ({"tag": "26.05.2"}, "ghcr.io/kubeslurm/slurmd-ssh:26.05.2"),
        ({"tag": "26.05-ubuntu26.04"}, f"{SLINKY}/slurmd:26.05-ubuntu26.04"),
        ({"repository": "r/slurmd"}, "r/slurmd:26.05"),
        ("r/x:2", "r/x:2"),
    ],
)
def test_workers_with_ssh_get_the_image_that_has_an_sshd(image: Any, expected: str) -> None:
    own = {"ssh": {"enabled": True}, "slurmd": {"image": image}}
    objects = render({"nodesets": {"gpu": own, "cpu": {}}})
    assert objects["NodeSet", "slurm-worker-gpu"]["spec"]["slurmd"]["image"] == expected
    assert objects["NodeSet", "slurm-worker-cpu"]["spec"]["slurmd"]["image"] == "ghcr.io/kubeslurm/slurmd:26.05"


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """The chart, with its notes as an object: `helm template` does not print them."""
    chart = tmp_path / "slurm"
    shutil.copytree(CHART, chart)
    notes = (chart / "templates" / "NOTES.txt").read_text()
    named = f'{{{{ define "notes" }}}}{notes}{{{{ end }}}}\n'
    tree = 'kind: Notes\nmetadata: {name: notes}\ntext: {{ include "notes" . | toJson }}\n'
    (chart / "templates" / "notes.yaml").write_text(named + tree)
    return chart


def test_images_that_are_named_by_half_are_told(telling: Path) -> None:
    half: dict[str, Any] = {
        "controller": {"slurmctld": {"image": {"tag": "25.11-ubuntu24.04"}}},
        "nodesets": {"gpu": {"slurmd": {"image": {"repository": f"{SLINKY}/slurmd"}}}},
        "loginsets": {"main": {"login": {"image": {"tag": "26.05.2"}}}},
    }
    text = render(half, telling)["Notes", "notes"]["text"]
    told = [line for line in text.splitlines() if "only one of repository and tag is set" in line]
    assert [line.split(":")[0] for line in told] == [
        "controller.slurmctld.image",
        "nodesets.gpu.slurmd.image",
        "loginsets.main.login.image",
    ]
    assert f"{SLINKY}/slurmctld:25.11-ubuntu24.04" in told[0]
    assert (
        "WARNING" not in render({"nodesets": {"gpu": {}}, "loginsets": {"main": {}}}, telling)["Notes", "notes"]["text"]
    )
