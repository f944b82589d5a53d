"""What the tests of the callbacks share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for scripted_tasks
