from pathlib import Path
from typing import Any

import pytest

from kubeslurm.cli.up import deletion, helm, objects, releases, repair
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Record, Release
from kubeslurm.local.host.progress import Progress

AT = repair.Situation(Access((), ()), alone=True, settled=True)
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "slurm"}}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slurm"}}
MANIFEST = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: slurm}\n"


class World:
    """What is on the cluster, and what was done to it, in order."""

    def __init__(self) -> None:
        self.live: list[dict[str, Any]] = [NAMESPACE, SECRET]
        self.acts: list[str] = []


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()
    monkeypatch.setattr(helm, "manifest", lambda *_: MANIFEST)
    monkeypatch.setattr(objects, "live", lambda *_: found.live)
    monkeypatch.setattr(deletion, "leftovers", lambda *_: [SECRET])
    monkeypatch.setattr(deletion, "wait_until_gone", lambda _, __, trees: found.acts.append(f"wait for {len(trees)}"))
    monkeypatch.setattr(helm, "discard", lambda *_, alone: found.acts.append("discard"))
    monkeypatch.setattr(helm, "install", lambda *_, wait: found.acts.append("install"))
    return found


@pytest.fixture
def release(tmp_path: Path) -> Release:
    (tmp_path / "chart").mkdir()
    return Release(releases.SLURM, "slurm", tmp_path / "chart", {})


def ensure(release: Release, record: Record | None) -> bool:
    return repair.ensure(AT, release, record, Progress())


def test_a_release_with_all_its_objects_is_left_alone(world: World, release: Release) -> None:
    assert not ensure(release, Record(release.digest, "deployed"))
    assert world.acts == []


def test_a_missing_object_is_put_back_though_chart_and_values_are_unchanged(world: World, release: Release) -> None:
    world.live = [NAMESPACE]
    assert ensure(release, Record(release.digest, "deployed"))
    assert world.acts == ["wait for 1", "install"]


def test_other_values_are_installed(world: World, release: Release) -> None:
    assert ensure(release, Record("other", "deployed"))
    assert world.acts == ["wait for 2", "install"]


def test_a_failed_release_is_installed_again(world: World, release: Release) -> None:
    assert ensure(release, Record(release.digest, "failed"))
    assert world.acts == ["wait for 2", "install"]


@pytest.mark.parametrize("status", ["pending-install", "pending-upgrade", "uninstalling"])
def test_the_record_of_a_killed_helm_is_discarded_before_the_next(world: World, release: Release, status: str) -> None:
    assert ensure(release, Record(release.digest, status))
    assert world.acts == ["wait for 2", "discard", "install"]


def test_what_an_uninstalled_release_left_behind_must_be_gone_first(world: World, release: Release) -> None:
    assert ensure(release, None)
    assert world.acts == ["wait for 2", "install"]


def test_a_namespace_that_is_being_deleted_must_be_gone_first(world: World, release: Release) -> None:
    world.live[0] = NAMESPACE | {"metadata": {"name": "slurm", "deletionTimestamp": "now"}}
    assert ensure(release, Record(release.digest, "deployed"))
    assert world.acts == ["wait for 2", "install"]
