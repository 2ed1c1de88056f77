import os
import stat
from pathlib import Path

import pytest

from kubeslurm.local.cluster import state
from kubeslurm.local.cluster.nodespec import nodes
from kubeslurm.local.cluster.state import ClusterSpec, Home, InitRecord
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import files


@pytest.fixture(autouse=True)
def _state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_cluster_spec_can_be_saved_and_loaded() -> None:
    home = Home("c")
    home.make()
    spec = ClusterSpec("c", "127.64.0.1", tuple(nodes(1, ["gpu:label=a=b,taint=k=v:NoExecute"])), 5)
    files.save(home.spec_file, spec)
    assert home.spec() == spec
    assert state.names() == ["c"]
    assert stat.S_IMODE(home.spec_file.stat().st_mode) == 0o600


def test_an_incomplete_file_counts_as_missing() -> None:
    home = Home("c")
    home.make()
    home.spec_file.write_text('{"name": "c", ')
    assert home.spec() is None


def test_the_address_of_a_cluster_is_a_stable_and_free_loopback_address() -> None:
    first = state.address_for(Path("/a"), set())
    assert first.startswith("127.")
    assert state.address_for(Path("/a"), set()) == first
    assert state.address_for(Path("/a"), {first}) not in (first, "127.0.0.1")


def test_clusters_of_the_same_name_in_other_directories_have_other_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Home("c").group
    monkeypatch.setenv("XDG_STATE_HOME", "/other")
    assert Home("c").group != here


def test_a_process_with_a_reused_pid_is_not_the_init() -> None:
    home = Home("c")
    home.make()
    own = state.start_time(os.getpid())
    files.save(home.run / "init.json", InitRecord(os.getpid(), own))
    assert home.init() == InitRecord(os.getpid(), own)
    files.save(home.run / "init.json", InitRecord(os.getpid(), own - 1))
    assert home.init() is None


def test_a_second_command_cannot_take_the_lock() -> None:
    message = rf"\(process {os.getpid()}\) is at work on the cluster 'c'"
    with Home("c").locked(), pytest.raises(LocalError, match=message), Home("c").locked():
        pass


def test_a_command_that_holds_the_lock_may_take_it_again() -> None:
    home = Home("c")
    with home.locked():
        with home.locked():
            pass
        with pytest.raises(LocalError, match="is at work"), Home("c").locked():
            pass
    with Home("c").locked():
        pass


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 41, "../x", "a/b"])
def test_invalid_names_are_rejected(name: str) -> None:
    with pytest.raises(LocalError, match="not a valid name for a cluster"):
        Home(name)
