"""What asv discovers: one short module per question, parameters and nothing else.

asv imports this package alone, so the line below makes `measure` and `workloads` beside it importable, and `measure`
comes first because it fixes the number of threads before torch is loaded.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import measure  # noqa: F401
from contract import children

children.all_die_with_this_process()
