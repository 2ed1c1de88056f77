from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubeslurm.cli.app import app
from kubeslurm.cli.up import commands
from kubeslurm.cli.up.installation import FirstJob

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
    job = FirstJob(2, "worker-0\nworker-1\n", "ssh -F ~/x/config login", accounting=True)
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
