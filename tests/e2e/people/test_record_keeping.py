"""The cluster is taken down and brought up again on the volumes it left: what was recorded is still there."""

from kubeslurm.cli import helm
from tests.support.site import NAMESPACE, Site


def test_the_history_of_jobs_outlives_the_release(site: Site) -> None:
    job = site.submit_as("alice", "true")
    before = site.wait_until_recorded(job)
    helm.uninstall(site.product.access, "slurm", NAMESPACE)
    site.bring_up()
    assert site.wait_until_recorded(job) == before
