"""Readers that print MultiSlot lines."""

from argosy.data_generator import (DataGenerator, MultiSlotDataGenerator,
                                   MultiSlotStringDataGenerator)
from paddle import _names

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

__getattr__, __dir__ = _names.lazy(__name__)
