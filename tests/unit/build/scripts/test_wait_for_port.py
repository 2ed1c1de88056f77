"""A startup probe that waits until a daemon listens, instead of failing again and again."""

import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from kubeslurm.build.common.containers import WAIT_FOR_PORT


def probe(port: int, *path: str, shell_path: str = "/usr/bin:/bin") -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["/bin/sh", "-c", WAIT_FOR_PORT, str(port), *path], env={"PATH": shell_path})


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    """A port that nobody listens on yet."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


def test_it_waits_until_the_daemon_listens(bound: socket.socket) -> None:
    with probe(port_of(bound)) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=0.5)
        bound.listen()
        assert waiting.wait(timeout=60) == 0


def test_with_a_path_it_waits_for_a_good_answer(bound: socket.socket) -> None:
    asked: list[bytes] = []

    def serve() -> None:
        for status in (b"503 Service Unavailable", b"204 NO CONTENT"):
            connection, _ = bound.accept()
            with connection, connection.makefile("rb") as lines:
                asked.append(lines.readline())
                while lines.readline().strip():
                    pass
                connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    bound.listen()
    serving = threading.Thread(target=serve)
    serving.start()
    with probe(port_of(bound), "/livez") as waiting:
        assert waiting.wait(timeout=60) == 0
    serving.join()
    assert asked == [b"GET /livez HTTP/1.1\r\n"] * 2


def test_an_image_without_bash_is_left_to_the_other_probes(bound: socket.socket) -> None:
    assert probe(port_of(bound), shell_path="/nowhere").wait(timeout=60) == 0
