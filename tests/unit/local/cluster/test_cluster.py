import datetime as dt
from pathlib import Path

import pytest

from kubeslurm.local.cluster import nodespec, pki
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.cluster.state import Artifacts, ClusterSpec, InitRecord, Launch, start_time
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import files


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that runs, as far as its files tell: this process stands for its init."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cluster = Cluster("c")
    spec = ClusterSpec("c", "127.64.0.1", tuple(nodespec.nodes(1, [])))
    cluster.home.make()
    pki.ensure(cluster.home.pki, spec, dt.datetime.now(dt.UTC))
    files.save(cluster.home.run / "launch.json", Launch(spec, Artifacts(Path(), Path(), Path())))
    pid = int(Path("/proc/self").readlink().name)
    files.save(cluster.home.run / "init.json", InitRecord(pid, start_time(pid)))
    return cluster


def test_files_that_were_deleted_while_the_cluster_runs_are_written_again(running: Cluster) -> None:
    assert not running.up()
    assert running.spec.address == "127.64.0.1"
    assert "https://127.64.0.1:6443" in running.kubeconfig.read_text()


def test_if_the_keys_are_gone_up_says_what_to_do(running: Cluster) -> None:
    (running.home.pki / "admin.key").unlink()
    with pytest.raises(LocalError, match=r"runs, but .*admin\.key is gone. Run `kubeslurm local down --name c` and"):
        running.up()
