"""Who a process is."""

from argosy.fleet import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from paddle import _names

__all__ = ["GeneralRoleMaker", "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker"]

GeneralRoleMaker = PaddleCloudRoleMaker

__getattr__, __dir__ = _names.lazy(__name__)
