"""What a user is told when something on this machine stands in the way."""


class LocalError(Exception):
    """One clear sentence about what went wrong, and one about what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()
