"""A second Slurm cluster beside the first: with accounting, login pods and a directory of users."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from kubeslurm.cli.up.installation import Installation
from kubeslurm.local.cluster.cluster import Cluster
from tests.e2e.conftest import WORKERS
from tests.support.rest import wait_until_at_rest
from tests.support.site import NAMESPACE, Records, Site


@pytest.fixture(scope="package")
def site(product: Installation, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    whole = Site(product, cluster, tmp_path_factory.mktemp("ssh"))
    whole.bring_up()
    yield whole
    if not os.environ.get("KUBESLURM_KEEP"):
        # Only told to go: the tests after it need not wait for that, and soon the whole cluster goes.
        argv = cluster.kubectl_command("delete", "namespace", NAMESPACE, "--wait=false", "--request-timeout=30s")
        subprocess.run(argv, capture_output=True, timeout=60, check=False)


@pytest.fixture(scope="package")
def plain(cluster: Cluster) -> Records:
    """The cluster that everybody has after `kubeslurm up`, at rest whatever was done to it before."""
    whole = Records(cluster)
    wait_until_at_rest(whole, WORKERS)
    return whole
