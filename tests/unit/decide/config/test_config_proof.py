import msgspec

from kubeslurm.decide.config.running import Running, checksum, has_read, laggards
from kubeslurm.slurm.rest.models import Node


def node(name: str, state: list[str], started: int) -> Node:
    number = {"set": True, "infinite": False, "number": started}
    return msgspec.convert({"name": name, "state": state, "slurmd_start_time": number}, Node)


# What `conf` of a Slurm 26.05.5 answered that ran with exactly this text.
SEEN = 2388391227
TEXT = """\
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
    assert checksum(TEXT) == SEEN


def test_comments_count_in_the_checksum() -> None:
    assert checksum("# x\n" + TEXT) != SEEN


def test_included_files_make_the_checksum_useless() -> None:
    assert checksum("Include other.conf\n") is None


def test_slurmctld_has_read_the_files_when_it_started_over_and_the_checksum_is_right() -> None:
    before = Running(checksum=1, read_at=100)
    assert has_read(2, before, Running(checksum=2, read_at=101))
    assert not has_read(2, before, Running(checksum=2, read_at=100))
    assert not has_read(2, before, Running(checksum=1, read_at=101))
    assert has_read(None, before, Running(checksum=9, read_at=101))


def test_only_workers_that_answer_are_expected_to_follow() -> None:
    nodes = [
        node("a", ["IDLE"], 200),
        node("b", ["IDLE"], 99),
        node("c", ["DOWN"], 1),
        node("d", ["IDLE", "NOT_RESPONDING"], 1),
        node("e", ["IDLE", "EXTERNAL"], 0),
    ]
    assert laggards(nodes, 100) == ["b"]
