"""Who a process is."""

from argosy.fleet import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from paddle import _names

__all__ = ["PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker"]

__getattr__, __dir__ = _names.lazy(__name__)
