"""Asks the API server about rights: those of a scraper, of other accounts, and our own."""

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.control.rights import Rule
from kubeslurm.kube.errors import ApiError
from kubeslurm.kube.transport.connection import Connection, Request

AUTHENTICATION = "authentication.k8s.io/v1"
AUTHORIZATION = "authorization.k8s.io/v1"


class MetricsAccess:
    """Admits bearer tokens whose user may get the URL /metrics."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __call__(self, authorization: str) -> int:
        """200, or the status of the refusal."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401
        try:
            who = await _ask(self._connection, AUTHENTICATION, "TokenReview", {"token": token.strip()})
            if not who.get("authenticated"):
                return 401
            review = _metrics_review(who.get("user") or {})
            answer = await _ask(self._connection, AUTHORIZATION, "SubjectAccessReview", review)
        except ApiError:
            return 503
        return 200 if answer.get("allowed") else 403


async def permitted(connection: Connection, rule: Rule) -> bool:
    """Whether we ourselves may do, in all namespaces, everything that the rule names."""
    for verb in rule.verbs:
        name = rule.names[0] if rule.names else ""
        review = {"verb": verb, "group": rule.group, "resource": rule.resource, "name": name}
        answer = await _ask(connection, AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": review})
        if not answer.get("allowed"):
            return False
    return True


async def account_may(connection: Connection, account: tuple[str, str], rule: Rule, namespace: str) -> bool:
    """Whether a service account, by namespace and name, may do what the rule names; without a namespace, in all."""
    home, name = account
    for verb in rule.verbs:
        review = {
            "user": f"system:serviceaccount:{home}:{name}",
            "groups": ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{home}"],
            "resourceAttributes": {
                "verb": verb,
                "group": rule.group,
                "resource": rule.resource,
                "namespace": namespace,
            },
        }
        if not (await _ask(connection, AUTHORIZATION, "SubjectAccessReview", review)).get("allowed"):
            return False
    return True


async def _ask(connection: Connection, api_version: str, kind: str, spec: Tree) -> Tree:
    body = msgspec.json.encode({"apiVersion": api_version, "kind": kind, "spec": spec})
    path = f"/apis/{api_version}/{kind.lower()}s"
    request = Request(verb="create", kind=kind, method="POST", path=path, body=body)
    answer: Tree = msgspec.json.decode(await connection.write_unfenced(request))
    status: Tree = answer.get("status") or {}
    return status


def _metrics_review(user: Tree) -> Tree:
    return {
        "user": user.get("username", ""),
        "uid": user.get("uid", ""),
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }
