"""Shell scripts that run in pods."""

from importlib import resources

import pytest

from kubeslurm.api import names
from kubeslurm.build import scripts
from kubeslurm.build.controller import trial
from kubeslurm.build.login import deployment

FILES = sorted(file.name for file in resources.files(scripts).iterdir() if file.name.endswith(".sh"))


@pytest.mark.parametrize("name", FILES)
def test_comments_at_the_top_do_not_reach_pods(name: str) -> None:
    text = (resources.files(scripts) / name).read_text()
    assert text.startswith("#!/bin/sh\n# ")
    script = scripts.read(name)
    assert script
    assert not script.startswith("#")
    assert text.endswith(script)


def test_the_login_script_uses_the_paths_and_the_user_of_the_pod() -> None:
    script = deployment.INITCONF_SCRIPT
    assert f"{deployment.MOUNTED_DIR}/*.key" in script
    assert f"copy={deployment.COPIED_DIR}/" in script
    assert f"chown {names.SLURM_UID}:{names.SLURM_UID}" in script


def test_the_trial_makes_the_directory_of_its_state() -> None:
    assert f"mkdir -p {trial.STATE} " in trial.SCRIPT
