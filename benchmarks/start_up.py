"""What does it take to start? See workloads/start_up.py for the variants."""

from workloads import start_up

from .common import _Question


class StartUp(_Question, workload=start_up):
    """Steps of a start; compare `import_torch` between releases, and `spawned_worker` with `forked_worker`."""
