"""Puts the shared cases of this folder on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
