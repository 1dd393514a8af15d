"""This rank among others, as the launcher's environment says."""

import os


def get_rank(group=None) -> int:
    """The number of this process, or its place in a group; 0 without a launcher."""
    if group is not None:
        return group.rank
    return int(os.environ.get("PADDLE_TRAINER_ID") or 0)


def get_world_size(group=None) -> int:
    """How many processes there are, or are in a group; 1 without a launcher."""
    if group is not None:
        return group.nranks
    return int(os.environ.get("PADDLE_TRAINERS_NUM") or 1)


class ParallelEnv:
    """The same, and addresses."""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return get_rank()

    local_rank = rank

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return get_world_size()

    nranks = world_size

    @property
    def device_id(self) -> int:
        """The first device that the launcher chose."""
        return int((os.environ.get("FLAGS_selected_gpus") or "0").split(",")[0])

    dev_id = device_id

    @property
    def current_endpoint(self) -> str:
        """This process' address."""
        return os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def trainer_endpoints(self) -> list:
        """The addresses of all."""
        return os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
