"""Functions of each element, and choices between elements."""
