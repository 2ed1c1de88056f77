import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubeslurm.cli.app import app
from kubeslurm.cli.up import commands, login
from kubeslurm.cli.up.first_job import FirstJob
from kubeslurm.cli.up.installation import Installation
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import disk, lock

RUN = CliRunner()


@pytest.mark.parametrize("text", ["- a\n- list\n", "a: [\n"])
def test_an_invalid_values_file_is_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    result = RUN.invoke(app, ["up", "--values", str(file)])
    assert result.exit_code == 1
    assert "values.yaml" in result.output


def test_up_with_a_context_asks_for_confirmation() -> None:
    result = RUN.invoke(app, ["up", "--context", "theirs"], input="n\n")
    assert result.exit_code == 1
    assert "'theirs'?" in result.output


def test_up_prints_how_to_log_in_and_how_to_list_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    job = FirstJob(2, "worker-0\nworker-1\n", login="ssh -F ~/x/config login", accounting=True)
    commands._print_result(job, True, 12.34, "kubectl")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Slurm is up after 12.3 s. Output of `srun --nodes=2 hostname`:"
    assert lines[-2:] == [
        "  ssh -F ~/x/config login sacct --allusers --starttime=now-1week",
        "  ssh -F ~/x/config login",
    ]


def test_without_a_login_pod_up_prints_commands_for_the_slurmctld_container(capsys: pytest.CaptureFixture[str]) -> None:
    commands._print_result(FirstJob(1, "worker-0\n"), False, 1.0, "kubectl")
    output = capsys.readouterr().out
    assert "nothing was changed" in output
    assert "exec statefulset/slurm-controller -c slurmctld -- sbatch" in output
    assert "sacct" not in output


def test_without_a_first_job_up_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    commands._print_result(FirstJob(0, skipped="There are no workers"), True, 1.0, "kubectl")
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "Slurm is up after 1.0 s. There are no workers, so no first job was run."


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_command_in_the_middle_of_another_names_that_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Cluster("c").home.locked():
        result = RUN.invoke(app, [command, "--name", "c"])
    assert result.exit_code == 1
    assert f"(process {os.getpid()}) is at work on the cluster 'c'." in result.output


def test_two_commands_on_the_cluster_of_one_context_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with lock.exclusive(login.directory("theirs"), "it"):
        result = RUN.invoke(app, ["up", "--context", "theirs", "--yes"])
    assert "is at work on the cluster of the context 'theirs'." in result.output


def test_a_full_disk_is_named_whatever_failed_because_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(disk, "is_full", lambda _: True)

    def fail(*_: object) -> None:
        raise LocalError("kubectl get failed: connection refused")

    monkeypatch.setattr(Installation, "local", fail)
    result = RUN.invoke(app, ["up", "--name", "c"])
    assert result.exit_code == 1
    assert "The disk is full" in result.output
    assert "connection refused" not in result.output
