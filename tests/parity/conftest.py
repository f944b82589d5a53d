"""torch computes on one thread here: small tensors gain nothing, and busy machines lose."""

import contextlib

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)
