"""The parts of the operator, put together but not started."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubeslurm.engine import collector
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import Fenced
from kubeslurm.operator import process
from kubeslurm.operator.admission import Admission
from kubeslurm.operator.controllers import REGISTRATIONS, SETTINGS, concurrency, enabled, options
from kubeslurm.operator.rbac import cached
from kubeslurm.operator.settings.load import load
from kubeslurm.operator.settings.model import OperatorSettings, SettingsError, WebhookSettings
from kubeslurm.operator.wiring import Operator


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Leads nowhere; nothing here opens a connection."""
    tree = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(tree))
    return str(file)


async def test_readiness_waits_for_every_kind_that_is_watched(kubeconfig: str) -> None:
    operator = Operator(OperatorSettings(kubeconfig=kubeconfig, leader_elect=True))
    assert set(operator.manager.unsynced) == {kind.plural for kind in cached()}
    await operator.connection.close()


@pytest.mark.parametrize("mode", ["", "Condition", "Taint", "Cordon"])
def test_drains_are_shown_on_nodes_only_on_request(mode: str) -> None:
    settings = OperatorSettings(slurm_drain_on_node=mode)
    assert options(settings).slurm_drain_on_node == mode
    assert ("nodedrain" in {each.name for each in enabled(settings)}) is bool(mode)


def test_the_concurrency_of_every_controller_is_a_setting() -> None:
    given = [f"--{each.flag.replace('_', '-')}=7" for each in REGISTRATIONS]
    settings, _warnings = load(SETTINGS, given, {})
    assert {concurrency(settings, each) for each in REGISTRATIONS} == {7}
    assert concurrency(SETTINGS(), REGISTRATIONS[0]) == REGISTRATIONS[0].concurrency


async def test_slurm_is_not_written_to_before_leadership_is_won(kubeconfig: str) -> None:
    operator = Operator(OperatorSettings(kubeconfig=kubeconfig, leader_elect=True))
    cluster = operator.clusters.update(
        Key("ns", "slurm"), ["http://127.0.0.1:1"], b"a key of at least thirty-two bytes"
    )
    cluster.client.transport._versions["http://127.0.0.1:1"] = "v0.0.45"
    with pytest.raises(Fenced):
        await cluster.client.reconfigure()
    await operator.clusters.close()
    await operator.connection.close()


async def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match="no kubeconfig /does/not/exist"):
        Operator(OperatorSettings(kubeconfig="/does/not/exist"))


async def test_the_webhook_needs_an_address(kubeconfig: str) -> None:
    with pytest.raises(SettingsError, match="set server-addr"):
        Admission(WebhookSettings(kubeconfig=kubeconfig, server_addr="0"))


async def test_the_webhook_is_not_ready_before_it_has_a_certificate(kubeconfig: str) -> None:
    admission = Admission(WebhookSettings(kubeconfig=kubeconfig, cert_secret="certificates"))
    assert admission.waiting() == ["certificate"]
    await admission.connection.close()


@pytest.fixture
def _collector() -> Iterator[None]:
    """A process sets Python's collector for itself; this one has other tests to run."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("_collector")
def test_a_process_seldom_looks_for_garbage() -> None:
    async def work(_stop: asyncio.Event) -> None:
        assert gc.get_threshold()[0] == collector.THRESHOLD
        assert gc.get_freeze_count() > 0

    assert process.run(work) == 0


@pytest.mark.usefixtures("_collector")
def test_a_signal_ends_the_work_in_peace() -> None:
    async def work(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()

    assert process.run(work) == 0


@pytest.mark.usefixtures("_collector")
def test_an_expected_failure_ends_the_process_with_a_sentence() -> None:
    async def work(_stop: asyncio.Event) -> None:
        raise process.StillBusyError("a NodeSet is still being deleted")

    assert process.run(work) == 1
