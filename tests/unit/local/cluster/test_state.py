import os
import stat
from pathlib import Path

import pytest

from kubeslurm.local.cluster import state
from kubeslurm.local.cluster.nodespec import nodes
from kubeslurm.local.cluster.state import ClusterSpec, Home, InitRecord
from kubeslurm.local.errors import LocalError


@pytest.fixture(autouse=True)
def _state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_what_was_asked_for_is_read_back_as_it_was_written() -> None:
    home = Home("c")
    home.make()
    spec = ClusterSpec("c", "127.64.0.1", tuple(nodes(1, ["gpu:label=a=b,taint=k=v:NoExecute"])), 5)
    state.save(home.spec_file, spec)
    assert home.spec() == spec
    assert state.names() == ["c"]
    assert stat.S_IMODE(home.spec_file.stat().st_mode) == 0o600


def test_a_half_written_file_counts_as_none() -> None:
    home = Home("c")
    home.make()
    home.spec_file.write_text('{"name": "c", ')
    assert home.spec() is None


def test_addresses_are_loopback_stable_and_never_shared() -> None:
    first = state.address_for(Path("/a"), set())
    assert first.startswith("127.")
    assert state.address_for(Path("/a"), set()) == first
    assert state.address_for(Path("/a"), {first}) not in (first, "127.0.0.1")


def test_clusters_of_the_same_name_elsewhere_have_other_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Home("c").group
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert Home("c").group != here


def test_a_process_that_took_over_the_number_is_not_the_init() -> None:
    home = Home("c")
    home.make()
    own = state.started(os.getpid())
    state.save(home.run / "init.json", InitRecord(os.getpid(), own))
    assert home.init() == InitRecord(os.getpid(), own)
    state.save(home.run / "init.json", InitRecord(os.getpid(), own - 1))
    assert home.init() is None


def test_two_commands_at_once_are_told_apart() -> None:
    with Home("c").locked(), pytest.raises(LocalError, match="right now"), Home("c").locked():
        pass


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a" * 41, "../x", "a/b"])
def test_names_that_would_not_do_are_refused(name: str) -> None:
    with pytest.raises(LocalError, match="no name for a cluster"):
        Home(name)
