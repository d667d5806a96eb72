"""The base of all handles, and the loaded library."""

from typing import Any

class ObjectRef:
    def close(self) -> None: ...
    def detach(self) -> None: ...

lib: Any
