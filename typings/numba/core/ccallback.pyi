"""Functions with the calling convention of C."""

class CFunc:
    @property
    def address(self) -> int: ...
