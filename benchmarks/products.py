"""What do matrix products and convolutions cost? See workloads/products.py for dtypes, shapes and layouts."""

from workloads import products

from .common import _Question


class Products(_Question, workload=products):
    """Dtypes x shapes; compare `time` of each between releases, and with that of `float32`."""
