"""CEL rules that several kinds share."""

from kubeslurm.api.meta import Rule


def _ref(self: str) -> str:
    """CEL: the JWT key in force, as one string; a change of the field's name alone is no change."""
    new, old = f"{self}.jwtKeyRef", f"{self}.jwtHs256KeyRef"
    return f"(has({new}) ? {new}.name + '/' + {new}.key : has({old}) ? {old}.name + '/' + {old}.key : '')"


JWT_KEY_IMMUTABLE = Rule(
    message="jwtKeyRef (or jwtHs256KeyRef) is immutable: put a new key into the same Secret instead",
    rule=f"{_ref('self')} == {_ref('oldSelf')}",
    field=".jwtKeyRef",
)
EXTERNAL_RULES = (
    Rule(
        message="slurmKeyRef must be set when external is false",
        rule="!self.external ? has(self.slurmKeyRef) : true",
    ),
    Rule(
        message="jwtKeyRef or jwtHs256KeyRef must be set when external is false",
        rule="!self.external ? has(self.jwtKeyRef) || has(self.jwtHs256KeyRef) : true",
    ),
    Rule(
        message="externalConfig must be set when external is true",
        rule="self.external ? has(self.externalConfig) : true",
    ),
)
CONTROLLER_IMMUTABLE = Rule(
    message="controllerRef is immutable: delete the object and create it again to move it to another cluster",
    rule="self.name == oldSelf.name",
)
CONTROLLER_NAMED = Rule(
    message="controllerRef.name must name a Controller in this namespace",
    rule="self.name != ''",
)
