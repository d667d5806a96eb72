"""The op table: one declaration per operation, all its rules beside it."""
