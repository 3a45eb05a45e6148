"""The public name of the Arrow target, :mod:`jms_selector.targets.arrow`. Importing this module imports pyarrow."""

from jms_selector.targets.arrow.masks import Masks, exact, keep, masks

__all__ = ["Masks", "exact", "keep", "masks"]
