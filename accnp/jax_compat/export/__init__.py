"""Export of programs: symbolic sizes, serialization, and the exported program."""
