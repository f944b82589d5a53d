"""What the processor can do."""


def get_cpu_capability() -> str:
    """`"DEFAULT"`: the kernels are compiled for the processor that they run on."""
    return "DEFAULT"
