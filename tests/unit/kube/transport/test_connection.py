from pathlib import Path

import pytest
import yaml

from kubeslurm.kube.transport.connection import ConfigurationError, connect

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "here",
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


def test_the_context_chooses_the_cluster(kubeconfig: Path) -> None:
    assert connect(kubeconfig).base_url == "https://127.0.0.1:6443"
    assert connect(kubeconfig, "here").base_url == "https://127.0.0.1:6443"


def test_an_unknown_context_is_named(kubeconfig: Path) -> None:
    with pytest.raises(ConfigurationError, match="'elsewhere'"):
        connect(kubeconfig, "elsewhere")


def test_a_missing_file_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing-here.*set KUBECONFIG"):
        connect(tmp_path / "nothing-here")


def test_a_missing_file_of_the_environment_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match="gone"):
        connect()


def test_a_broken_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("clusters: [")
    with pytest.raises(ConfigurationError, match="broken"):
        connect(path)


def test_a_user_with_an_unsupported_credential_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "config"
    users = [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]
    path.write_text(yaml.safe_dump(CONFIG | {"users": users}))
    with pytest.raises(ConfigurationError, match=r"auth-provider.*set KUBECONFIG"):
        connect(path)
