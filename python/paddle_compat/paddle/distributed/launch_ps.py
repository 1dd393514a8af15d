"""python -m paddle.distributed.launch_ps: servers and workers on this machine, logs in logs/."""

from argosy._launch import launch_ps

if __name__ == "__main__":
    launch_ps()
