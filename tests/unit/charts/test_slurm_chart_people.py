"""What the slurm chart renders for accounting and login."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "charts" / "slurm"
HELM = str(Path(sys.executable).parent / "helm")


def rendered(*options: str) -> dict[tuple[str, str], dict[str, Any]]:
    command = [HELM, "template", "slurm", str(CHART), "--namespace=hpc", *options]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    trees = [tree for tree in yaml.safe_load_all(text) if tree]
    return {(tree["kind"], tree["metadata"]["name"]): tree for tree in trees}


def test_accounting_points_to_a_database_that_exists_already() -> None:
    objects = rendered("--set=accounting.enabled=true", "--set=accounting.storageConfig.host=db.example.org")
    assert objects["Accounting", "slurm"]["spec"]["storageConfig"]["host"] == "db.example.org"
    assert objects["Controller", "slurm"]["spec"]["accountingRef"] == {"name": "slurm"}
    assert ("StatefulSet", "slurm-mariadb") not in objects


def test_the_trial_database_is_wired_to_slurmdbd() -> None:
    objects = rendered("--set=accounting.enabled=true", "--set=accounting.mariadb.enabled=true")
    storage = objects["Accounting", "slurm"]["spec"]["storageConfig"]
    assert storage["host"] == objects["Service", "slurm-mariadb"]["metadata"]["name"]
    assert objects["Secret", storage["passwordKeyRef"]["name"]]["data"][storage["passwordKeyRef"]["key"]]
    container = objects["StatefulSet", "slurm-mariadb"]["spec"]["template"]["spec"]["containers"][0]
    assert "--innodb-snapshot-isolation=OFF" in container["args"]
    assert {"name": "MARIADB_DATABASE", "value": storage["database"]} in container["env"]
    claims = objects["StatefulSet", "slurm-mariadb"]["spec"]["volumeClaimTemplates"]
    assert claims[0]["spec"]["resources"]["requests"]["storage"] == "8Gi"


def test_without_accounting_no_database_comes() -> None:
    objects = rendered("--set=accounting.mariadb.enabled=true")
    assert not [kind for kind, _ in objects if kind in {"Accounting", "StatefulSet"}]


def test_an_external_slurmdbd_brings_no_database() -> None:
    objects = rendered(
        "--set=accounting.enabled=true", "--set=accounting.mariadb.enabled=true", "--set=accounting.external=true"
    )
    assert objects["Accounting", "slurm"]["spec"]["externalConfig"] == {"host": "slurmdbd.example.com", "port": 6819}
    assert ("StatefulSet", "slurm-mariadb") not in objects


def test_login_sets_stand_side_by_side() -> None:
    objects = rendered("--set=loginsets.main.replicas=2", "--set=loginsets.admin.rootSshAuthorizedKeys=ssh-ed25519 A")
    assert objects["LoginSet", "slurm-login-main"]["spec"]["replicas"] == 2
    assert objects["LoginSet", "slurm-login-admin"]["spec"]["rootSshAuthorizedKeys"] == "ssh-ed25519 A"


def test_workers_with_ssh_get_the_job_step_that_a_login_joins() -> None:
    def conf(*options: str) -> str:
        return str(rendered("--set=nodesets.gpu.replicas=1", *options)["Controller", "slurm"]["spec"].get("extraConf"))

    assert "PrologFlags=Contain" in conf("--set=nodesets.gpu.ssh.enabled=true")
    assert "PrologFlags" not in conf()
    own = conf("--set=nodesets.gpu.ssh.enabled=true", "--set=controller.extraConf=PrologFlags=Alloc\\,Contain")
    assert own.count("PrologFlags") == 1


def test_slurmdbd_reaches_the_trial_database_before_a_probe_does() -> None:
    objects = rendered("--set=accounting.enabled=true", "--set=accounting.mariadb.enabled=true")
    assert objects["Service", "slurm-mariadb"]["spec"]["publishNotReadyAddresses"] is True
