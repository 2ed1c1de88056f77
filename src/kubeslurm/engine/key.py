"""The key of an object: all that a reconcile function is given."""

from typing import NamedTuple


class Key(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> "Key":
        """The inverse of str()."""
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)
