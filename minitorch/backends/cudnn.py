"""cuDNN is not used: its switches can be set and change nothing."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10


def is_available() -> bool:
    """False: cuDNN is not used."""
    return False


def version() -> int | None:
    """None: cuDNN is not used."""
    return None
