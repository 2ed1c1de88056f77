"""Tokens: issued, accepted by Slurm, re-issued when the key changes, gone with their Token."""

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

import jwt
import pytest

from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

TOKEN = "tokens.slinky.slurm.net"
SECRET = "someone-jwt-slurm"


def manifest(name: str, key_secret: str, **spec: object) -> str:
    body = {"jwtKeyRef": {"name": key_secret, "key": "jwt.key"}, "username": "slurm", **spec}
    head = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Token", "metadata": {"name": name}}
    return json.dumps(head | {"spec": body})


def issued(slurm: Slurm, secret: str) -> str | None:
    found = slurm.find("secret", secret)
    return base64.b64decode(found["data"]["SLURM_JWT"]).decode() if found else None


def accepted(slurm: Slurm, token: str) -> bool:
    """Whether Slurm takes a command that carries this token."""
    return "PartitionName" in slurm.run("env", f"SLURM_JWT={token}", "scontrol", "show", "partition", check=False)


def signed_by(key: str, token: str | None) -> bool:
    """Whether a token is good by this key."""
    with contextlib.suppress(jwt.InvalidSignatureError):
        return bool(token and jwt.decode(token, key, algorithms=["HS256"]))
    return False


def put_key(slurm: Slurm, name: str, key: str) -> None:
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"jwt.key": key}}
    slurm.kubectl("apply", "--filename=-", stdin=json.dumps(tree))


@pytest.fixture
def own_key(slurm: Slurm) -> Iterator[str]:
    put_key(slurm, "own-key", secrets.token_hex(32))
    yield "own-key"
    slurm.kubectl("delete", "secret", "own-key")


@pytest.fixture
def token(slurm: Slurm) -> Iterator[None]:
    yield
    slurm.kubectl("delete", TOKEN, "someone", "--ignore-not-found")
    wait_for("the end of its Secret", lambda: slurm.find("secret", SECRET) is None)


@pytest.mark.usefixtures("token")
def test_slurm_takes_an_issued_token(slurm: Slurm) -> None:
    slurm.kubectl("apply", "--filename=-", stdin=manifest("someone", "slurm-auth-jwt"))
    value = wait_for("the token", lambda: issued(slurm, SECRET))
    wait_for("Slurm to take it", lambda: accepted(slurm, value))
    wait_for("the status", lambda: slurm.conditions(TOKEN, "someone").get("Ready", {}).get("status") == "True")


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("spec", [{"lifetime": "1h"}, {"refresh": False}], ids=["refreshed", "not refreshed"])
def test_a_new_signing_key_brings_a_token_that_it_has_signed(slurm: Slurm, own_key: str, spec: dict[str, Any]) -> None:
    slurm.kubectl("apply", "--filename=-", stdin=manifest("someone", own_key, **spec))
    wait_for("the token", lambda: issued(slurm, SECRET))
    key = secrets.token_hex(32)
    put_key(slurm, own_key, key)
    wait_for("a token of the new key", lambda: signed_by(key, issued(slurm, SECRET)))


@pytest.mark.usefixtures("token")
def test_slurm_takes_the_token_of_no_other_key(slurm: Slurm, own_key: str) -> None:
    slurm.kubectl("apply", "--filename=-", stdin=manifest("someone", own_key))
    value = wait_for("the token", lambda: issued(slurm, SECRET))
    assert not accepted(slurm, value)


@pytest.mark.usefixtures("token")
def test_the_secret_goes_with_its_token(slurm: Slurm) -> None:
    slurm.kubectl("apply", "--filename=-", stdin=manifest("someone", "slurm-auth-jwt"))
    wait_for("the token", lambda: issued(slurm, SECRET))
    slurm.kubectl("delete", TOKEN, "someone")
    wait_for("the end of the Secret", lambda: slurm.find("secret", SECRET) is None)


@pytest.mark.usefixtures("token")
def test_a_missing_key_is_said(slurm: Slurm) -> None:
    slurm.kubectl("apply", "--filename=-", stdin=manifest("someone", "no-such-secret"))
    ready = wait_for("the condition", lambda: slurm.conditions(TOKEN, "someone").get("Ready"))
    assert ready["reason"] == "SecretKeyNotFound"
    assert "no-such-secret" in ready["message"]
