"""Declares the controller of Tokens."""

from collections.abc import Iterable

from kubeslurm.api.kinds import SECRET, TOKEN
from kubeslurm.api.views import Secret
from kubeslurm.control import rights
from kubeslurm.control.registration import Context, Registration, Watch, own_key
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.token.reconciler import TokenReconciler


def _of_secret(context: Context, secret: Secret) -> Iterable[Key]:
    for token in context.caches.store(TOKEN):
        ref = token.spec.jwt_ref
        if token.namespace == secret.namespace and secret.name in (token.secret_name, ref and ref.name):
            yield Key(*token.key)


REGISTRATION = Registration(
    name="token",
    kind=TOKEN,
    make=TokenReconciler,
    watches=(Watch(TOKEN, own_key), Watch(SECRET, _of_secret)),
    rights=(
        *rights.apply(SECRET),
        # An immutable Secret, of a token that is not refreshed, can only be replaced by deleting it.
        rights.on(SECRET, "delete"),
    ),
)
