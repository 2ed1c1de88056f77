"""Keys that a former chart has made: `helm upgrade` and `helm uninstall` leave them as they are."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from kubeslurm.cli.up import helm
from kubeslurm.cli.up.access import local_access
from kubeslurm.cli.up.helm import Release
from kubeslurm.cli.up.releases import CHARTS
from kubeslurm.local.cluster.cluster import Cluster

KEYS = ("slurm-auth-slurm", "slurm-auth-jwt")
# What the chart did once: it made keys, and knew its own again at an upgrade.
FORMER = """
{{- range $name, $key := dict "slurm-auth-slurm" "slurm.key" "slurm-auth-jwt" "jwt.key" }}
---
apiVersion: v1
kind: Secret
metadata:
  {{- include "slurm.metadata" (dict "root" $ "name" $name) | nindent 2 }}
type: Opaque
data:
  {{ $key }}: {{ randAlphaNum 64 | b64enc }}
{{- end }}
"""


async def secrets(cluster: Cluster, namespace: str) -> dict[str, Any]:
    args = ("get", "secret", *KEYS, f"--namespace={namespace}", "--output=json")
    items = json.loads(await asyncio.to_thread(cluster.kubectl, *args))["items"]
    return {item["metadata"]["name"]: item for item in items}


async def data(cluster: Cluster, namespace: str) -> dict[str, Any]:
    return {name: found["data"] for name, found in (await secrets(cluster, namespace)).items()}


async def test_keys_of_a_former_chart_outlive_upgrade_and_uninstall(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    former = tmp_path / "slurm"
    shutil.copytree(CHARTS / "slurm", former)
    (former / "templates" / "keys.yaml").write_text(FORMER, encoding="utf-8")
    access = local_access(definitions)
    await asyncio.to_thread(helm.install, access, Release("slurm", namespace, former, {}))
    before = await data(definitions, namespace)
    assert set(before) == set(KEYS)

    release = Release("slurm", namespace, CHARTS / "slurm", {})
    for _ in range(2):
        await asyncio.to_thread(helm.install, access, release)
        assert await data(definitions, namespace) == before
        for found in (await secrets(definitions, namespace)).values():
            assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"

    await asyncio.to_thread(helm.uninstall, access, "slurm", namespace)
    assert await data(definitions, namespace) == before
