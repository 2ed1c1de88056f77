"""A second Slurm cluster beside the first: with accounting, login pods and a directory of users."""

import pytest

from kubeslurm.cli.up.installation import Installation
from tests.e2e.conftest import WORKERS
from tests.support.kubernetes import Kubernetes
from tests.support.settled import wait_for_webhook, wait_until_settled
from tests.support.site import NODES, Records, Site
from tests.support.slurm import Slurm


@pytest.fixture(scope="session")
def installed_site(product: Installation, cluster: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Stays until the whole cluster goes."""
    wait_until_settled(Slurm(cluster), WORKERS)
    wait_for_webhook(cluster)
    whole = Site(product, cluster, tmp_path_factory.mktemp("ssh"))
    whole.bring_up()
    return whole


@pytest.fixture(scope="module")
def site(installed_site: Site) -> Site:
    """Settled, whatever was done to it or to the machines before."""
    wait_until_settled(installed_site, NODES)
    return installed_site


@pytest.fixture(scope="module")
def plain(cluster: Kubernetes) -> Records:
    """The cluster that everybody has after `kubeslurm up`, settled whatever was done to it before."""
    whole = Records(cluster)
    wait_until_settled(whole, WORKERS)
    return whole
