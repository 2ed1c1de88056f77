"""Kubernetes quantities ("500m", "32Gi"), read exactly."""

from fractions import Fraction

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_MIB = 2**20


def parse(text: str | int | float) -> Fraction:
    """The value in base units; raises ValueError on anything that Kubernetes would refuse."""
    plain = str(text).strip()
    number = plain.rstrip("numkMGTPEi")
    try:
        return Fraction(number) * _SUFFIXES[plain[len(number) :]]
    except (ValueError, KeyError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a quantity: write it like 500m, 8 or 32Gi") from None


def cores(text: str | int | float) -> int:
    """Whole cores, rounded up: half a core still needs one."""
    return -(-parse(text) // 1)


def mebibytes(text: str | int | float) -> int:
    """Whole MiB, rounded down: Slurm must not be told of memory beyond the limit."""
    return int(parse(text) // _MIB)
