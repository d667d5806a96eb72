"""`accnp.interpreters.pxla`: the current mesh, under the name that older programs use."""

from types import SimpleNamespace

from accnp.module_getattr import install_getattr as _install_getattr
from accnp.sharding.meshes import Mesh, get_mesh

__all__ = ["Mesh", "thread_resources"]


class _Resources:
    @property
    def env(self) -> SimpleNamespace:
        """The state of this thread: `physical_mesh`, which is empty if no mesh is in use."""
        return SimpleNamespace(physical_mesh=get_mesh())


thread_resources = _Resources()

_install_getattr(__name__, __all__)
