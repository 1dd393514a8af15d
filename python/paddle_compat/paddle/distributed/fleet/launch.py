"""python -m paddle.distributed.fleet.launch: becomes fleetrun, whose flags it has."""

from argosy._launch import launch

if __name__ == "__main__":
    launch()
