"""oneDNN is not used."""


def is_available() -> bool:
    """False: oneDNN is not used."""
    return False
