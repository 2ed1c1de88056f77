"""A NodeSet under random acts of users, admins, machines and Slurm: no job is ever killed by the operator."""

import pytest

from tests.support.nodeset_driver import Driver
from tests.support.nodeset_setting import Setting

SETTINGS = {
    "ordinals": Setting(),
    "ordinals, evictions allowed": Setting(protection=False),
    "ordinals on the host network": Setting(host_network=True, domain=".example.org"),
    "daemons": Setting(mode="DaemonSet"),
    "daemons on the host network": Setting(mode="DaemonSet", host_network=True, domain=".example.org"),
    "daemons, evictions allowed": Setting(mode="DaemonSet", protection=False),
    "daemons with an image that does not take the name": Setting(
        mode="DaemonSet", host_network=True, domain=".example.org", takes_name=False
    ),
}


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
async def test_random_acts_never_cost_a_job_and_everything_converges(setting: Setting, seed: int) -> None:
    await Driver(seed, setting).run()
