"""What a NodeSet and its machines are like in a world of random acts."""

import msgspec


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the NodeSet and its machines are like."""

    mode: str = "StatefulSet"
    host_network: bool = False
    domain: str = ""  # of the machines' own names
    protection: bool = True
    takes_name: bool = True  # the image uses the name that it is given

    @property
    def is_found(self) -> bool:
        """Whether slurmd registers under the name that the operator looks for."""
        return self.takes_name or not (self.host_network and self.domain)
