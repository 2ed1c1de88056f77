"""How the images' entry points read what they are given."""

import re
import subprocess
from pathlib import Path

import pytest

from kubeslurm.local.sources import SOURCES
from tests.slurm.hosts import wait_for
from tests.support.waiting import WITHIN

SCRIPTS = SOURCES / "images" / "slurm"
SHEBANG = re.compile(rb"#!\S*(/env )?(/|\b)(ba|da)?sh\b")

# Notes its arguments one per line; -C describes a machine of 2 sockets with 4 cores of 2 threads and 64 GB.
STUB = """#!/bin/bash
[[ $1 == -C ]] && exec echo "Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=64000"
printf '%s\\n' "$@" > "$NOTES.new" && mv "$NOTES.new" "$NOTES"
exit 3
"""


def arguments(tmp_path: Path, *given: str, env: dict[str, str] | None = None) -> list[str]:
    """What the entry point hands to slurmd."""
    notes = tmp_path / "notes"
    for name, text in {"slurmd": STUB, "hostname": "#!/bin/sh\necho worker-3\n", "mkdir": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    settings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBESLURM_LIB": str(SCRIPTS), "NOTES": str(notes)}
    command = ["bash", str(SCRIPTS / "slurmd.sh"), *given]
    process = subprocess.Popen(command, env=settings | (env or {}), stderr=subprocess.DEVNULL)
    try:
        wait_for("slurmd to be started", notes.exists)
    finally:
        process.terminate()
        assert process.wait(timeout=WITHIN) == 0
    return notes.read_text().splitlines()


def node_conf(words: list[str]) -> str:
    return words[words.index("--conf") + 1]


def shell_scripts() -> list[Path]:
    """Those of all images and those that run in pods, by their first line or, if other scripts read them, by name."""
    files = [path for folder in ("images", "src") for path in (SOURCES / folder).rglob("*") if path.is_file()]
    return [path for path in files if path.suffix == ".sh" or SHEBANG.match(path.read_bytes())]


def test_all_shell_scripts_pass_shellcheck() -> None:
    found = shell_scripts()
    assert {path.parent.name for path in found} >= {"base", "slurm", "mariadb", "openldap", "scripts"}
    # SC2016: what another shell or program is to expand is in single quotes on purpose.
    options = ("--external-sources", "--source-path=SCRIPTDIR", "--exclude=SC2016")
    subprocess.run(["shellcheck", *options, *map(str, found)], check=True, timeout=WITHIN)


def test_plain_arguments_pass_through_with_the_host_name(tmp_path: Path) -> None:
    assert arguments(tmp_path, "-Z", "--conf-server", "c:6817") == [
        "-b",
        "-Z",
        "--conf-server",
        "c:6817",
        "-N",
        "worker-3",
    ]


def test_a_given_node_name_is_kept(tmp_path: Path) -> None:
    assert arguments(tmp_path, "-Z", "-N", "mine") == ["-b", "-Z", "-N", "mine"]


def test_the_node_name_of_the_environment_beats_the_host_name(tmp_path: Path) -> None:
    assert arguments(tmp_path, "-Z", env={"SLURMD_NODENAME": "kube-7"})[-2:] == ["-N", "kube-7"]


def test_quotes_meant_for_a_shell_are_taken_off(tmp_path: Path) -> None:
    assert node_conf(arguments(tmp_path, "--conf", "'Features=gpu,h100 Gres=gpu:8'")) == "Features=gpu,h100 Gres=gpu:8"


def test_nothing_is_evaluated(tmp_path: Path) -> None:
    words = arguments(tmp_path, "--conf", "'Features=$(touch /tmp/x) Gres=`id` Weight=$HOME;*'")
    assert node_conf(words) == "Features=$(touch /tmp/x) Gres=`id` Weight=$HOME;*"


@pytest.mark.parametrize(
    "text", ["'Features=a Topology='\"$SLINKY_TOPOLOGY\"''", "'Features=a Topology='", "Features=a"]
)
def test_an_empty_topology_is_left_out(tmp_path: Path, text: str) -> None:
    assert node_conf(arguments(tmp_path, "--conf", text)) == "Features=a"


@pytest.mark.parametrize("name", ["SLINKY_TOPOLOGY", "POD_TOPOLOGY"])
def test_a_topology_of_the_environment_is_added(tmp_path: Path, name: str) -> None:
    words = arguments(
        tmp_path, "--conf", "'Features=a Topology='\"$SLINKY_TOPOLOGY\"''", env={name: "topo:s1,block:b1"}
    )
    assert node_conf(words) == "Features=a Topology=topo:s1,block:b1"


def test_a_topology_of_the_user_wins(tmp_path: Path) -> None:
    words = arguments(tmp_path, "--conf", "Topology=mine:x", env={"SLINKY_TOPOLOGY": "topo:s1"})
    assert node_conf(words) == "Topology=mine:x"


def test_pod_limits_reserve_the_rest_of_the_machine(tmp_path: Path) -> None:
    env = {"POD_CPUS": "6", "POD_MEMORY": "32000", "SLINKY_TOPOLOGY": "t:s"}
    words = arguments(tmp_path, "--conf", "'Features=a'", env=env)
    assert node_conf(words) == "Features=a Topology=t:s CoreSpecCount=5 MemSpecLimit=32000"


def test_limits_beyond_the_machine_reserve_nothing(tmp_path: Path) -> None:
    words = arguments(tmp_path, "--conf", "Features=a", env={"POD_CPUS": "16", "POD_MEMORY": "64000"})
    assert node_conf(words) == "Features=a"


def test_what_the_user_reserves_stands(tmp_path: Path) -> None:
    env = {"POD_CPUS": "6", "POD_MEMORY": "32000"}
    words = arguments(tmp_path, "--conf", "Corespeccount=1 Memspeclimit=5", env=env)
    assert node_conf(words) == "Corespeccount=1 Memspeclimit=5"


def test_options_of_the_environment_come_first_and_keep_their_quoted_blanks(tmp_path: Path) -> None:
    words = arguments(tmp_path, "-v", "-D", env={"SLURMD_OPTIONS": "-Z --extra 'a b'"})
    assert words == ["-b", "-Z", "--extra", "a b", "-v", "-N", "worker-3"]


def controller_arguments(tmp_path: Path, *saved: str) -> list[str]:
    """What the entry point hands to slurmctld when these files are in the state directory."""
    notes, state = tmp_path / "notes", tmp_path / "state"
    state.mkdir()
    for name in saved:
        (state / name).write_text("")
    (tmp_path / "slurm.conf").write_text(f"ClusterName=a\nstatesavelocation={state} # here\n")
    (tmp_path / "slurmctld").write_text(STUB)
    (tmp_path / "slurmctld").chmod(0o755)
    settings = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "KUBESLURM_LIB": str(SCRIPTS),
        "NOTES": str(notes),
        "SLURM_ETC": str(tmp_path),
        "SLURM_RUN": str(tmp_path / "run"),
        "SLURMCTLD_OPTIONS": "-v",
    }
    command = ["bash", str(SCRIPTS / "slurmctld.sh"), "-D", "-R"]
    done = subprocess.run(command, env=settings, check=False, timeout=WITHIN)
    assert done.returncode == 1
    return notes.read_text().splitlines()


def test_slurmctld_gets_the_options_of_both_sides(tmp_path: Path) -> None:
    assert controller_arguments(tmp_path) == ["-f", f"{tmp_path}/slurm.conf", "-v", "-R"]


def test_a_first_boot_that_was_cut_short_does_not_keep_slurmctld_from_starting(tmp_path: Path) -> None:
    assert "-i" in controller_arguments(tmp_path, "clustername", "last_config_lite")


def test_saved_state_is_never_ignored_once_it_is_whole(tmp_path: Path) -> None:
    assert "-i" not in controller_arguments(tmp_path, "clustername", "assoc_usage")
