"""A second Slurm cluster beside the first: with accounting, login pods and a directory of users."""

import os
from collections.abc import Iterator

import pytest

from kubeslurm.cli import helm
from kubeslurm.cli.product import Product
from kubeslurm.local.cluster import Cluster
from tests.support.site import NAMESPACE, Site


@pytest.fixture(scope="session")
def site(product: Product, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    whole = Site(product, cluster, tmp_path_factory.mktemp("ssh"))
    whole.bring_up()
    yield whole
    if not os.environ.get("KUBESLURM_KEEP"):
        helm.uninstall(product.access, "slurm", NAMESPACE)
        cluster.kubectl("delete", "namespace", NAMESPACE)
