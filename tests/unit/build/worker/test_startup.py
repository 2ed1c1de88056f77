"""Hashes of what a worker reads only when it starts."""

from kubeslurm.api import names
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import Ssh
from kubeslurm.build.worker import startup
from tests.support.workers import controller, nodeset

SSH = Ssh(enabled=True, sssdConfRef=SecretKeySelector(name="sssd", key="sssd.conf"))


def test_without_ssh_only_the_key_and_the_conf_server_count() -> None:
    assert startup.hashes(controller(), nodeset(), b"key", b"").keys() == {names.SLURM_KEY_HASH, names.RESTART_HASH}


def test_without_a_controller_or_a_key_nothing_is_known_about_them() -> None:
    assert startup.hashes(None, nodeset(), b"", b"") == {}
    assert names.SLURM_KEY_HASH not in startup.hashes(controller(), nodeset(), b"", b"")


def test_a_missing_sssd_conf_has_no_hash() -> None:
    given = nodeset(ssh=SSH)
    assert names.SSSD_CONF_HASH not in startup.hashes(None, given, b"", b"")
    assert startup.hashes(None, given, b"", b"[sssd]").keys() == {names.SSHD_CONF_HASH, names.SSSD_CONF_HASH}
