"""Which images the operator's chart starts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHART = Path(__file__).parents[3] / "charts" / "slurm-operator"
HELM = Path(sys.executable).with_name("helm")


def render(values: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
    argv = [str(HELM), "template", "slurm-operator", str(CHART), "--values=-"]
    return subprocess.run(argv, input=json.dumps(values), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("component", ["operator", "webhook"])
@pytest.mark.parametrize("image", [{"repository": "ghcr.io/slinkyproject/slurm-operator"}, "r/slinkyproject/x:1.2.1"])
def test_images_of_slinkys_operator_are_refused_before_anything_changes(component: str, image: Any) -> None:
    done = render({component: {"image": image}})
    assert done.returncode
    assert f"remove {component}.image from your values" in done.stderr


def test_an_image_without_a_repository_is_ours() -> None:
    done = render({"operator": {"image": {"repository": None, "tag": "0.1.1"}}})
    assert 'image: "ghcr.io/kubeslurm/slurm-operator:0.1.1"' in done.stdout, done.stderr
