import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubeslurm.cli.app import MODULES, app
from kubeslurm.cli.up import command
from kubeslurm.cli.up.product import FirstJob

RUN = CliRunner()


def test_every_command_is_there_and_says_what_it_does() -> None:
    shown = RUN.invoke(app, ["--help"]).output
    assert all(f" {name} " in shown for name in MODULES)


def test_a_command_that_does_not_exist_is_refused() -> None:
    assert RUN.invoke(app, ["upp"]).exit_code == 2


def test_commands_of_the_operator_do_without_the_one_machine_kubernetes() -> None:
    code = """
import sys
from kubeslurm.cli.app import app
app(["rbac"], standalone_mode=False)
sys.exit(any(name.startswith("kubeslurm.local") for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("text", ["- a\n- list\n", "a: [\n"])
def test_values_that_are_no_values_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    result = RUN.invoke(app, ["up", "--values", str(file)])
    assert result.exit_code == 1
    assert "values.yaml" in result.output


def test_a_cluster_of_somebody_else_is_asked_for() -> None:
    result = RUN.invoke(app, ["up", "--context", "theirs"], input="n\n")
    assert result.exit_code == 1
    assert "'theirs'?" in result.output


def test_up_ends_with_the_ways_to_the_records_and_in(capsys: pytest.CaptureFixture[str]) -> None:
    job = FirstJob(2, "worker-0\nworker-1\n", "ssh -F ~/x/config login", recorded=True)
    command._tell(job, True, 12.34, "kubectl")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Slurm is up after 12.3 s. `srun --nodes=2 hostname` says:"
    assert lines[-2:] == [
        "  ssh -F ~/x/config login sacct --allusers --starttime=now-1week",
        "  ssh -F ~/x/config login",
    ]


def test_without_a_login_pod_commands_run_in_slurmctlds(capsys: pytest.CaptureFixture[str]) -> None:
    command._tell(FirstJob(1, "worker-0\n"), False, 1.0, "kubectl")
    said = capsys.readouterr().out
    assert "nothing was changed" in said
    assert "exec statefulset/slurm-controller -c slurmctld -- sbatch" in said
    assert "sacct" not in said
