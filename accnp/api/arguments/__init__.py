"""What users hand over: arrays, numbers, shapes, axes. Out: nodes and checked values."""
