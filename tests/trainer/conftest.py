"""What the tests of the Trainer share: small tasks, small data, a quiet Trainer."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for toy_tasks
