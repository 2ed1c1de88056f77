import subprocess
import sys

from typer.testing import CliRunner

from kubeslurm.cli.app import MODULES, app

RUN = CliRunner()


def test_help_lists_every_command() -> None:
    output = RUN.invoke(app, ["--help"]).output
    assert all(f" {name} " in output for name in MODULES)


def test_an_unknown_command_is_rejected() -> None:
    assert RUN.invoke(app, ["upp"]).exit_code == 2


def test_commands_of_the_operator_do_not_import_the_local_cluster() -> None:
    code = """
import sys
from kubeslurm.cli.app import app
app(["rbac"], standalone_mode=False)
sys.exit(any(name.startswith("kubeslurm.local") for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
