"""A shell over ssh that stays open while a test does something else."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.site import SLOWLY, Site


class Session:
    """One user's shell in a login pod."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def says(self, command: str) -> str:
        """The next line that the shell says when it is given a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        return self._process.stdout.readline().strip()


@contextmanager
def connected(site: Site, user: str, pod: str) -> Iterator[Session]:
    """A session that answers; it ends with the block, and not without it before a test gives up."""
    argv = ["timeout", str(SLOWLY), *site.ssh_command(user, pod), "sh"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        session = Session(process)
        assert session.says("echo ready") == "ready"
        yield session
