"""Commands as a page of the documentation shows them, run against the cluster of a test."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from kubeslurm.local.cluster.cluster import Cluster
from tests.support.kubernetes import run

ROOT = Path(__file__).parents[2]


def commands(page: str, heading: str) -> str:
    """The shell commands below a heading of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    start = text.index(f"# {heading}\n") + 2
    part = text[start:].split("\n#", 1)[0].split("```sh\n")
    assert len(part) > 1, f"{page} shows no commands below {heading!r}"
    return "".join(each.split("```", 1)[0] for each in part[1:])


class Reader:
    """Somebody who follows the documentation, with the charts and a values file in the current folder."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.folder = folder
        tools = folder / "bin"
        tools.mkdir()
        kubectl = cluster.kubectl_command()
        (tools / "kubectl").write_text(f'#!/bin/sh\nexec {" ".join(kubectl)} "$@"\n')
        (tools / "kubectl").chmod(0o755)
        (tools / "helm").symlink_to(Path(sys.executable).with_name("helm"))
        shutil.copytree(ROOT / "charts", folder / "charts", symlinks=True)
        self.settings = (f"PATH={tools}:{os.environ['PATH']}", f"KUBECONFIG={cluster.kubeconfig}")

    def follow(self, page: str, heading: str, instead: Mapping[str, str] | None = None) -> str:
        """Runs what the page says, with words replaced that only a user can fill in."""
        script = commands(page, heading)
        for old, new in (instead or {}).items():
            assert old in script, f"{page} does not mention {old}"
            script = script.replace(old, new)
        return self.type(script)

    def type(self, script: str) -> str:
        """Runs a script; fails with its output as soon as a command fails."""
        done = run(["env", f"--chdir={self.folder}", *self.settings, "sh", "-eux", "-c", script])
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout
