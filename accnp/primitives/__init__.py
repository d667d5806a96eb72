"""Declarations of the primitives: one `Op` per operation, with all of its rules next to it."""
