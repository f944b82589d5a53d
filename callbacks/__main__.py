"""`python -m minitorch.callbacks`: the callbacks that installed packages offer."""

from minitorch.callbacks.discovery import describe_plugins

print(describe_plugins())
