"""MKL is not used."""


def is_available() -> bool:
    """False: MKL is not used."""
    return False
