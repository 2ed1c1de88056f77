"""When Python looks for garbage: seldom, in a process that keeps nearly all it reads and makes few cycles."""

import gc

# New objects after which it looks; with the default of 700, following a large cluster costs a tenth more CPU.
THRESHOLD = 50_000


def relax() -> None:
    """At the start of a process: what its modules brought stays, and is not walked again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD)


def settle() -> None:
    """After the first lists: what they brought lives for long, and is not walked again either."""
    gc.freeze()
