"""Which workers started with files that have changed since."""

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.meta import OwnerReference
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import Ssh
from kubeslurm.decide.nodeset.facts import Facts
from kubeslurm.decide.nodeset.rollout import is_stale, outdated
from kubeslurm.decide.nodeset.worker import Worker
from tests.support.workers import NOW, nodeset, worker

KEY, RESTART, SSHD, SSSD = names.SLURM_KEY_HASH, names.RESTART_HASH, names.SSHD_CONF_HASH, names.SSSD_CONF_HASH
CONTROLLER = OwnerReference(apiVersion=names.API_VERSION, kind="Controller", name="main", uid="u")
SSH = Ssh(enabled=True, sssdConfRef=SecretKeySelector(name="sssd", key="sssd.conf"))


def with_hashes(annotations: dict[str, str], *owners: OwnerReference) -> Worker:
    pod = worker(0).pod
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations, ownerReferences=owners)
    return Worker(pod=msgspec.structs.replace(pod, metadata=metadata))


@pytest.mark.parametrize(
    ("have", "hashes", "stale"),
    [
        ({KEY: "1", RESTART: "1"}, {KEY: "1", RESTART: "1"}, False),
        ({KEY: "1", RESTART: "1"}, {KEY: "2", RESTART: "1"}, True),
        ({KEY: "1", RESTART: "1"}, {KEY: "1", RESTART: "2"}, True),
        ({KEY: "1", RESTART: "1"}, {}, False),
        ({RESTART: "1"}, {KEY: "2", RESTART: "1"}, False),
        ({KEY: "1"}, {KEY: "2", RESTART: "2"}, False),
    ],
    ids=["same", "new key", "new settings", "nothing known", "key not known before", "pod of another operator"],
)
def test_a_changed_key_or_setting_makes_it_stale(have: dict[str, str], hashes: dict[str, str], stale: bool) -> None:
    assert is_stale(nodeset(), with_hashes(have, CONTROLLER), hashes) is stale


@pytest.mark.parametrize(
    ("have", "hashes", "stale"),
    [
        ({SSHD: "1", SSSD: "1"}, {SSHD: "1", SSSD: "1"}, False),
        ({SSHD: "1", SSSD: "1"}, {SSHD: "2", SSSD: "1"}, True),
        ({SSHD: "1", SSSD: "1"}, {SSHD: "1", SSSD: "2"}, True),
        ({SSHD: "1", SSSD: "1"}, {SSHD: "1"}, False),
    ],
    ids=["same", "new sshd_config", "new sssd.conf", "sssd.conf is missing"],
)
def test_changed_ssh_files_make_it_stale(have: dict[str, str], hashes: dict[str, str], stale: bool) -> None:
    assert is_stale(nodeset(ssh=SSH), with_hashes(have, CONTROLLER), hashes) is stale
    assert not is_stale(nodeset(), with_hashes(have, CONTROLLER), hashes)
    assert not is_stale(nodeset(ssh=SSH), with_hashes(have), hashes)


def test_a_worker_keeps_its_key_as_long_as_slurmctld_does() -> None:
    old = with_hashes({KEY: "1", RESTART: "1"}, CONTROLLER)
    facts = Facts(now=NOW, workers=(old,), revision=old.revision, startup_hashes={KEY: "2", RESTART: "1"})
    assert outdated(nodeset(), old, facts)
    assert not outdated(nodeset(), old, msgspec.structs.replace(facts, key_waits=True))
    settings = {KEY: "2", RESTART: "2"}
    assert outdated(nodeset(), old, msgspec.structs.replace(facts, key_waits=True, startup_hashes=settings))
