"""Configuration files as text.

The order and form of the lines is what existing clusters have; a difference would look like a change to all of them.
"""

from kubeslurm.api import names


def section(title: str, *lines: str) -> str:
    """A titled part of a file; nothing if it has no lines."""
    return "\n".join(("#", f"### {title} ###", *lines)) + "\n" if lines else ""


def auth_parameters(*, jwks: bool) -> dict[str, str]:
    """Comma lists that slurmctld and slurmdbd both need to check keys and tokens, whatever a user adds to them."""
    keys = f",jwks={names.ETC_DIR}/{names.JWKS_FILE}" if jwks else ""
    return {
        "AuthAltParameters": f"jwt_key={names.ETC_DIR}/{names.JWT_KEY_FILE}{keys}",
        "AuthInfo": "use_client_ids",
    }


def sshd_config(*settings: str, extra: str) -> str:
    """sshd_config of login pods and of workers with ssh; its hash is on their pods."""
    general = section("GENERAL", "Include /etc/ssh/sshd_config.d/*.conf", "UsePAM yes", *settings)
    return general + section("EXTRA CONFIG", extra)
