"""Apple's GPUs are not served."""


def is_available() -> bool:
    """False: Apple's GPUs are not served."""
    return False


def is_built() -> bool:
    """False: Apple's GPUs are not served."""
    return False
