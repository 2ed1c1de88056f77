"""slurm.conf as text: reading, merging, room for nodes, what needs a restart."""

import pytest

from kubeslurm.slurm import conf

TEXT = r"""# a comment
ClusterName=one   # another
SlurmctldParameters=enable_configless,\
reconfig_on_restart
NodeName=n[1-2] CPUs=4 \
  Gres=gpu:8
clustername=two
SchedulerParameters+=a=1
SchedulerParameters+=b
InteractiveStepOptions="--pty $SHELL"
Include extra.conf
odd line
"""


def test_lines_comments_and_continuations_are_read_as_slurm_does() -> None:
    entries = conf.parse(TEXT)
    assert [entry.line for entry in entries] == [2, 3, 5, 7, 8, 9, 10, 11, 12]
    assert entries[1].get("SLURMCTLDPARAMETERS") == "enable_configless,reconfig_on_restart"
    assert [(pair.name, pair.value) for pair in entries[2].pairs] == [
        ("NodeName", "n[1-2]"),
        ("CPUs", "4"),
        ("Gres", "gpu:8"),
    ]
    assert entries[-2].get("include") == "extra.conf"
    assert entries[-1].rest == "odd line"


def test_the_last_value_wins_and_plus_adds() -> None:
    settings = conf.values(conf.parse(TEXT))
    assert settings["clustername"] == "two"
    assert settings["schedulerparameters"] == "a=1,b"
    assert settings["interactivestepoptions"] == "--pty $SHELL"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("a#b", "a\\#b"),
        ("a\\", "a\\\\"),
        ("a b#\\", '"a b\\#\\\\"'),
        ("it's", "it's"),
        ('a"b', 'a"b'),
        ('"a', None),
        ('a "b', None),
        ("a\nb", None),
        ("\x00", None),
    ],
)
def test_a_value_is_written_as_slurm_reads_it(value: str, text: str | None) -> None:
    assert conf.written(value) == text


REQUIRED = {
    "SlurmctldParameters": "enable_configless,reconfig_on_restart",
    "AuthInfo": "use_client_ids",
    "AuthAltParameters": "jwt_key=/etc/slurm/jwt.key",
}


@pytest.mark.parametrize(
    ("extra", "lines"),
    [
        ("", []),
        ("MaxJobCount=5", []),
        (
            "SlurmctldParameters=idle_on_node_suspend",
            ["SlurmctldParameters=enable_configless,idle_on_node_suspend,reconfig_on_restart"],
        ),
        ("slurmctldparameters = Enable_Configless\r\n", ["SlurmctldParameters=enable_configless,reconfig_on_restart"]),
        (
            "AuthAltParameters=jwt_key=/mine,use_jwt_client_ids",
            ["AuthAltParameters=jwt_key=/etc/slurm/jwt.key,use_jwt_client_ids"],
        ),
        ("AuthInfo=ttl=5 # why\nAuthInfo=cred_expire=9", ["AuthInfo=cred_expire=9,use_client_ids"]),
        ("AuthInfo=a b", []),
        (
            "AuthAltParameters=UserClaimField=preferredName,JWKS=/Keys/Own.json",
            ["AuthAltParameters=jwks=/Keys/Own.json,jwt_key=/etc/slurm/jwt.key,userclaimfield=preferredName"],
        ),
    ],
)
def test_comma_lists_of_both_sides_are_merged(extra: str, lines: list[str]) -> None:
    assert conf.merged(extra, REQUIRED) == lines


def test_merged_lines_come_in_order_of_their_keys() -> None:
    extra = "SlurmctldParameters=x\nAuthInfo=y"
    assert [line.partition("=")[0] for line in conf.merged(extra, REQUIRED)] == ["AuthInfo", "SlurmctldParameters"]


@pytest.mark.parametrize(
    ("needed", "current", "count"),
    [
        (0, 0, 1024),
        (1024, 0, 1024),
        (1025, 0, 2048),
        (5000, 1024, 8192),
        (10, 4096, 4096),
        (3000, 1500, 3000),
        (10**6, 0, 65533),
    ],
)
def test_room_for_nodes_grows_by_doubling_and_never_shrinks(needed: int, current: int, count: int) -> None:
    assert conf.max_node_count(needed, current) == count


def restarting(old: str, new: str) -> list[str]:
    return conf.needs_restart({"slurm.conf": old}, {"slurm.conf": new})


def test_only_what_slurm_cannot_reconfigure_needs_a_restart() -> None:
    old = "ClusterName=a\nMaxNodeCount=1024\nSlurmctldPort=6817\nMaxJobCount=1\n"
    assert restarting(old, old + "PartitionName=x Nodes=ALL\nMaxJobCount=2\n") == []
    assert restarting(old, old + "maxnodecount=2048\n") == ["MaxNodeCount"]
    assert restarting(old, old.replace("SlurmctldPort=6817\n", "")) == ["SlurmctldPort"]


def test_a_topology_that_is_taken_away_needs_a_restart_and_another_one_does_not() -> None:
    without = {"slurm.conf": "ClusterName=a\n", "gres.conf": ""}
    first, second = (without | {"topology.yaml": f"- topology: {name}\n"} for name in ("x", "y"))
    assert conf.needs_restart(first, without) == ["topology.yaml"]
    assert conf.needs_restart(first, second) == []
    assert conf.needs_restart(without, {"slurm.conf": "ClusterName=a\n"}) == []


def test_settings_of_a_record_are_not_taken_for_global_ones() -> None:
    old = "ClusterName=a\n"
    assert restarting(old, old + "NodeName=x SlurmUser=y\n") == []


# What `conf` of a Slurm 26.05.5 returned that ran with this text.
FULL_CHECKSUM = 2388391227
FULL = """\
#
### GENERAL ###
ClusterName=slurm_slurm
SlurmUser=slurm
SlurmctldHost=slurm-controller-0(slurm-controller.slurm)
SlurmctldPort=6817
StateSaveLocation=/var/spool/slurmctld/slurm_slurm
SlurmdUser=root
SlurmdPort=6818
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=1024
#
### LOGGING ###
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmSchedLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
#
### PLUGINS & PARAMETERS ###
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
#
### ACCOUNTING ###
AccountingStorageType=accounting_storage/none
#
### NODESET & PARTITION ###
NodeSet=cpu Feature=cpu
#
### EXTRA CONFIG ###
ReturnToService=1
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED
"""


def test_the_checksum_is_the_one_slurm_computes() -> None:
    assert conf.checksum(FULL) == FULL_CHECKSUM


def test_comments_count_in_the_checksum() -> None:
    assert conf.checksum("# x\n" + FULL) != FULL_CHECKSUM


def test_a_configuration_with_included_files_has_no_checksum() -> None:
    assert conf.checksum("Include other.conf\n") is None


@pytest.mark.parametrize("text", ["", "ClusterName=test\n", "# \u00e4\n", "x" * 5000])
def test_the_checksum_by_table_equals_the_one_bit_by_bit(text: str) -> None:
    assert conf.checksum(text) == slow_checksum(text)


def slow_checksum(text: str) -> int:
    """As slurmctld does it; the real one is asked in tests/slurm."""
    value = 0
    for byte in text.encode():
        value = (value ^ ((byte - 256 if byte > 127 else byte) << 8)) & 0xFFFFFFFF
        for _ in range(8):
            value = ((value << 1) ^ (0x1021 if value & 0x8000 else 0)) & 0xFFFFFFFF
    return value
