"""torch computes on one thread here: small tensors gain nothing, and busy machines lose."""

import contextlib
import sys
from pathlib import Path

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)

sys.path.append(str(Path(__file__).parent))
