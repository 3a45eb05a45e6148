"""The modules of this folder import each other by name, as the scripts among them do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
