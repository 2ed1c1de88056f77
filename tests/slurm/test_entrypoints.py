"""The images' entry points: how they read what they are given, and that nothing ends them but their owner."""

import contextlib
import re
import subprocess
from pathlib import Path

import pytest

from kubeslurm.local.sources import SOURCES
from tests.slurm.hosts import PATIENCE, Host, until
from tests.slurm.lab import CONF, Lab, account, answers, idle

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
        until(notes.exists, "slurmd was not started")
    finally:
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    return notes.read_text().splitlines()


def node_conf(words: list[str]) -> str:
    return words[words.index("--conf") + 1]


def shell_scripts() -> list[Path]:
    """Those of all images, by their first line or, for parts that others read in, by their name."""
    files = [path for path in SCRIPTS.parent.rglob("*") if path.is_file()]
    return [path for path in files if path.suffix == ".sh" or SHEBANG.match(path.read_bytes())]


def test_scripts_of_all_images_pass_shellcheck() -> None:
    found = shell_scripts()
    assert {path.parent.name for path in found} >= {"base", "slurm", "mariadb", "openldap"}
    # SC2016: what another shell or program is to expand is in single quotes on purpose.
    options = ("--external-sources", "--source-path=SCRIPTDIR", "--exclude=SC2016")
    subprocess.run(["shellcheck", *options, *map(str, found)], check=True, timeout=PATIENCE)


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
    done = subprocess.run(command, env=settings, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    return notes.read_text().splitlines()


def test_slurmctld_gets_the_options_of_both_sides(tmp_path: Path) -> None:
    assert controller_arguments(tmp_path) == ["-f", f"{tmp_path}/slurm.conf", "-v", "-R"]


def test_a_first_boot_that_was_cut_short_does_not_keep_slurmctld_from_starting(tmp_path: Path) -> None:
    assert "-i" in controller_arguments(tmp_path, "clustername", "last_config_lite")


def test_saved_state_is_never_ignored_once_it_is_whole(tmp_path: Path) -> None:
    assert "-i" not in controller_arguments(tmp_path, "clustername", "assoc_usage")


def main_process(host: Host, name: str, *, after: int = 0) -> int:
    """The daemon once it is alone under its name; a process that takes over shares it for a moment."""

    def settled() -> int:
        found = host.processes(name)
        return found[0] if len(found) == 1 and found[0] != after else 0

    return until(settled, f"{name} has not settled down", evidence=host.evidence)


def text_of(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):  # not there yet, or being replaced
        return path.read_text()
    return ""


def says(host: Host, words: str, times: int = 1) -> None:
    """Waits until the entry point has said something, so many times."""
    until(lambda: host.output.read_text().count(words) >= times, f"not said: {words}", evidence=host.evidence)


def test_slurmctld_outlives_its_own_death_and_every_reconfigure(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    for times in (1, 2):
        before = main_process(controller, "slurmctld")
        controller.run("scontrol", "reconfigure")
        main_process(controller, "slurmctld", after=before)
        says(controller, "slurmctld: reconfigured", times)
        answers(controller)
    controller.run("kill", "-9", str(main_process(controller, "slurmctld")))
    says(controller, "starting it again")
    answers(controller)
    assert controller.terminate() == 0
    assert re.search("slurmctld: stopping", controller.output.read_text())


def test_slurmctld_comes_up_with_the_last_good_files_and_takes_the_mended_ones(lab: Lab) -> None:
    first = lab.slurmctld()
    answers(first)
    # The newest good configuration is the one to fall back to, not that of the start.
    lab.write("slurm.conf", CONF + "MaxJobCount=4321\n")
    first.run("scontrol", "reconfigure")
    good = lab.folder / "state" / "test" / "last-good-config"
    until(lambda: "4321" in text_of(good / "slurm.conf"), "the good files were not kept")
    assert not list(good.glob("*.key"))
    assert first.terminate() == 0

    lab.write("slurm.conf", CONF + "Bogus=1\n")
    second = lab.slurmctld()
    says(second, "last ones that worked")
    until(lambda: second.processes("slurmctld"), "slurmctld does not run", evidence=second.evidence)

    lab.write("slurm.conf", CONF + "MaxJobCount=5432\n")
    says(second, "have changed; trying them")
    # Until it has ended, the one with the old files still answers.
    until(
        lambda: "5432" in second.run("scontrol", "show", "config"),
        "the mended files are not used",
        evidence=second.evidence,
    )
    assert second.terminate() == 0


# In place of slurmctld: the first start fails, but not before it is told to.
SLOW_FAILURE = """\
#!/bin/sh
[ -e /var/log/slurm/failed ] && exec /usr/sbin/slurmctld "$@"
touch /var/log/slurm/starting
until [ -e /var/log/slurm/failed ]; do sleep 0.05; done
exit 1
"""


def test_files_that_are_mended_while_slurmctld_fails_with_the_bad_ones_are_tried(lab: Lab, tmp_path: Path) -> None:
    first = lab.slurmctld()
    answers(first)
    assert first.terminate() == 0
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "slurmctld").write_text(SLOW_FAILURE)
    (programs / "slurmctld").chmod(0o755)
    lab.write("slurm.conf", CONF + "Bogus=1\n")
    path = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
    second = lab.slurmctld(binds={"/usr/local/sbin": programs}, env=path)
    until((lab.log / "starting").exists, "slurmctld is not started", evidence=second.evidence)
    lab.write("slurm.conf", CONF + "MaxJobCount=5432\n")
    (lab.log / "failed").touch()
    says(second, "have changed; trying them")
    until(
        lambda: "5432" in second.run("scontrol", "show", "config"),
        "the mended files are not used",
        evidence=second.evidence,
    )
    assert second.terminate() == 0


def test_slurmctld_that_never_worked_ends_with_the_reason(lab: Lab) -> None:
    lab.write("slurm.conf", CONF + "Bogus=1\n")
    controller = lab.slurmctld()
    until(lambda: controller.ended, "it should have given up", evidence=controller.evidence)
    assert "unrecognized key: Bogus" in controller.output.read_text()


def test_a_job_survives_its_slurmd(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1")
    idle(controller, "n1")
    start_job(controller, worker)
    step = main_process(worker, "slurmstepd")
    began = slurmd_start(controller)
    worker.run("kill", "-9", str(main_process(worker, "slurmd")))
    says(worker, "slurmd: has ended")
    # One that has not registered yet would miss the call to reconfigure.
    until(lambda: slurmd_start(controller) != began, "slurmd has not come back", evidence=worker.evidence)
    controller.run("scontrol", "reconfigure")
    says(worker, "slurmd: reconfigured")
    assert step in worker.processes("slurmstepd")
    assert controller.run("squeue", "-h", "-o", "%T").split() == ["RUNNING"]
    assert worker.terminate() == 0


def start_job(controller: Host, worker: Host) -> None:
    """Waits until its script is at work: before that, Slurm is still busy with the launch."""
    controller.run("sbatch", "-o", "/dev/null", "--wrap", "exec sleep 3600")
    until(lambda: worker.processes("sleep"), "the job does not run", evidence=lambda: account(controller))


def slurmd_start(controller: Host) -> str:
    """When the only slurmd started, in whole seconds; a second and more pass before a dead one is started again."""
    found = controller.run("scontrol", "show", "node", "n1").partition("SlurmdStartTime=")[2]
    return found.split()[0]


def run_time(controller: Host) -> int:
    """For how many seconds the only job has run, as slurmctld counts."""
    minutes, seconds = controller.run("squeue", "-h", "-o", "%M").strip().split(":")
    return int(minutes) * 60 + int(seconds)


def test_a_replaced_worker_gives_up_the_job_that_died_with_the_old_one(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1")
    idle(controller, "n1")
    start_job(controller, worker)
    worker.close()
    # Slurm believes in a reboot only a good second after it last heard of the node, and hears of a launch that late.
    heard = run_time(controller)
    until(lambda: run_time(controller) > heard + 3, "slurmctld does not count on", evidence=lambda: account(controller))
    lab.slurmd("n1", "--extra=second")
    until(
        lambda: "Node unexpectedly rebooted" in controller.run("scontrol", "show", "node", "n1"),
        "not noticed",
        evidence=lambda: account(controller),
    )
    assert "Extra=second" in controller.run("scontrol", "show", "node", "n1")
    until(
        lambda: controller.run("squeue", "-h", "-o", "%T").split() == ["PENDING"],
        "the job was not given up",
        evidence=lambda: account(controller),
    )


def test_slurmd_waits_for_a_slurmctld_that_comes_later(lab: Lab) -> None:
    worker = lab.slurmd("n1")
    until(worker.output.read_text, "the entry point has not started")
    controller = lab.slurmctld()
    answers(controller)
    until(lambda: "n1" in controller.run("sinfo", "-h", "-N", "-o", "%n"), "n1 has not registered")
