from pathlib import Path

import pytest

from kubeslurm.local.errors import LocalError
from kubeslurm.local.images import host_settings

DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
ONE_LINE = """\
# deb http://old.example/debian bookworm main
deb [signed-by=/k.gpg] https://vendor.example/apt stable main
deb http://classic.example/debian/ bookworm main
"""


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_the_mirror_is_read_from_deb822_sources(apt: Path) -> None:
    (apt / "sources.list.d" / "debian.sources").write_text(DEB822)
    assert host_settings.debian_mirror(apt) == "http://mirror.example/debian"


def test_the_mirror_is_read_from_a_sources_list_without_comments_and_vendors(apt: Path) -> None:
    (apt / "sources.list").write_text(ONE_LINE)
    assert host_settings.debian_mirror(apt) == "http://classic.example/debian"


def test_a_machine_without_a_debian_mirror_is_an_error(apt: Path) -> None:
    (apt / "sources.list").write_text("deb http://archive.example/ubuntu noble main\n")
    with pytest.raises(LocalError, match="no Debian mirror"):
        host_settings.debian_mirror(apt)


def test_apt_prefers_forky_and_uses_the_proxy_of_the_machine() -> None:
    machine = 'Acquire::http::Proxy "http://proxy.example:3128";\nAcquire::https::Proxy "";\nAPT::Other "x";\n'
    options = host_settings.apt_options(machine).splitlines()
    assert options[0] == 'APT::Default-Release "forky";'
    assert 'Acquire::http::Proxy "http://proxy.example:3128";' in options
    assert not any("APT::Other" in line or '""' in line for line in options)


def test_pip_uses_the_index_and_certificates_of_the_machine() -> None:
    listed = "global.index-url='https://index.example/simple'\n:env:.find-links='/wheels'\n"
    text = host_settings.pip_settings(listed, {"PIP_TIMEOUT": "60"})
    assert text == f"[global]\ncert = {host_settings.CA}\nindex-url = https://index.example/simple\ntimeout = 60\n"


def test_settings_are_private_files_mounted_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_settings, "debian_mirror", lambda: "http://mirror.example/debian")
    options = host_settings.write(tmp_path / "settings")
    assert (tmp_path / "settings").stat().st_mode & 0o077 == 0
    for option in options:
        source, place, mode = option.removeprefix("--volume=").split(":")
        assert Path(source).is_file()
        assert place.startswith("/")
        assert mode == "ro"
