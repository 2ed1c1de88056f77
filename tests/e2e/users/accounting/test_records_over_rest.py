"""Both halves of the REST API are served by a slurmrestd that has no key of Slurm."""

import json

from tests.support.site import Site
from tests.support.web import fetch


def test_slurmrestd_serves_jobs_and_records_with_tokens_alone(site: Site) -> None:
    (pod,) = site.items("pods", selector="app.kubernetes.io/name=slurmrestd")
    files = site.exec(pod["metadata"]["name"], "slurmrestd", "ls", "/etc/slurm").split()
    assert files == ["slurm.conf"]
    token = site.run("scontrol", "token", "username=slurm", "lifespan=600").strip().partition("=")[2]
    server, headers = f"http://{pod['status']['podIP']}:6820", {"X-SLURM-USER-TOKEN": token}
    nodes = json.loads(fetch(site.cluster, f"{server}/slurm/v0.0.44/nodes", headers=headers))["nodes"]
    assert {each["name"] for each in nodes} == set(site.nodes())
    clusters = json.loads(fetch(site.cluster, f"{server}/slurmdb/v0.0.44/clusters", headers=headers))["clusters"]
    assert f"{site.namespace}_{site.name}" in {each["name"] for each in clusters}
