"""Values with characters that mean something in Slurm's files are read back as they were."""

from collections.abc import AsyncIterator

import pytest

from kubeslurm.slurm import conf
from kubeslurm.slurm.rest.client import SlurmClient
from tests.slurm.cluster import Cluster
from tests.slurm.lab import CONF

VALUES = [
    "a#b",
    "#",
    "a\\b",
    "a\\",
    "a\\#b",
    "two  blanks # and\\",
    "it's",
    "'quoted'",
    'a"b',
    "=x,y=",
    "pässword",
    "$HOME%c",
]


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[SlurmClient]:
    client = cluster.lab.client()
    yield client
    cluster.lab.write("slurm.conf", CONF)
    await client.reconfigure()
    await client.close()


@pytest.mark.parametrize("value", VALUES)
async def test_slurm_reads_what_was_written(cluster: Cluster, client: SlurmClient, value: str) -> None:
    cluster.lab.write("slurm.conf", f"{CONF}MailDomain={conf.written(value)}\nMaxJobCount=777\n")
    await client.reconfigure()
    pairs = (line.partition("=") for line in cluster.controller.run("scontrol", "show", "config").splitlines())
    shown = {name.strip(): text.strip() for name, _, text in pairs}
    assert (shown["MailDomain"], shown["MaxJobCount"]) == (value, "777")
