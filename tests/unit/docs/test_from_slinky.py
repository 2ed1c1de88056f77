"""What docs/from-slinky.md says of events, metrics, values and links is so."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

from kubeslurm.api import names
from kubeslurm.engine import metrics as engine_metrics
from kubeslurm.kube import metrics as kube_metrics
from kubeslurm.report.events import Event
from kubeslurm.report.reasons import Reason
from kubeslurm.webhooks import app

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "from-slinky.md").read_text(encoding="utf-8")
# The closed list of that operator's events, release 1.2.1.
THEIR_EVENTS = {
    *("SyncFailed", "CreateSucceeded", "CreateFailed", "PatchFailed", "DeleteSucceeded", "DeleteFailed"),
    *("ScalingUp", "ScalingDown", "RollingUpdate", "Scheduled Update", "NodeCordon", "SlurmNodeNotRegistered"),
    *("DefunctSlurmNodePruned", "ControllerRefFailed", "SyncFinalizerFailed", "FailedDaemonPod", "SucceededDaemonPod"),
    *("HostnameMismatch", "ConflictingController", "SuccessfulCreate", "SuccessfulDelete", "SuccessfulUpdate"),
    *("FailedCreate", "FailedDelete", "FailedUpdate"),
}
CONDITIONS = {"Ready", "Progressing", "Degraded"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without the head."""
    part = PAGE.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_event_of_that_operator_has_a_counterpart_or_none() -> None:
    assert {name for row in rows("Events") for name in words(row[0])} == THEIR_EVENTS
    ours = {str(each) for each in (*Event, *Reason)}
    for row in rows("Events"):
        same = [name for name in words(row[0]) if row[1].startswith("the same")]
        assert set(same) <= set(Event)
        ways = [word for word in words(row[1]) if word not in CONDITIONS and "/" not in word]
        assert set(ways) <= ours, row
        assert all(word == names.POD_CORDON_BY for word in words(row[1]) if "/" in word)


def test_every_metric_exists() -> None:
    # They register what they count when they are imported.
    assert {each.__name__.split(".")[1] for each in (engine_metrics, kube_metrics, app)} == {
        "engine",
        "kube",
        "webhooks",
    }
    known = {each.name for each in REGISTRY.collect()}
    for row in rows("Metrics"):
        for name in words(row[1]):
            if name.startswith("kubeslurm_"):
                assert name.removesuffix("_total") in known, name


@pytest.mark.parametrize("chart", ["slurm-operator", "slurm"])
def test_every_value_has_the_default_that_is_named(chart: str) -> None:
    values = yaml.safe_load((ROOT / "charts" / chart / "values.yaml").read_text())
    for name, _, here, *_ in rows(f"Chart `{chart}`"):
        (place,), (default,) = words(name), words(here)
        assert at(values, place) == yaml.safe_load(default), place


def at(values: Any, place: str) -> Any:
    for part in place.split("."):
        values = values[part]
    return values


def test_every_reason_annotation_and_finalizer_in_the_behaviour_exists() -> None:
    said = {word for row in rows("Behaviour") for word in words(row[2])}
    assert {word for word in said if word.startswith("kubeslurm.dev/")} == {names.FORCE_DELETE, names.FINALIZER}
    assert "NotSupported" in said & set(Reason)


def test_the_first_command_is_no_uninstall() -> None:
    take_over = PAGE.split("## Take over\n", 1)[1].split("\n## ", 1)[0]
    commands = [block.split("```")[0] for block in re.split(r"```(?:sh|console)\n", take_over)[1:]]
    assert commands
    assert not any("uninstall" in block for block in commands)
    assert (
        "helm uninstall slurm-operator" not in (ROOT / "docs" / "quickstart.md").read_text().split("## Uninstalling")[0]
    )
