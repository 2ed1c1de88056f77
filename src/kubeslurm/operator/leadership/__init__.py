"""Which replica of which operator may act."""
