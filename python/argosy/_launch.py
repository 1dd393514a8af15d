"""What `python -m paddle.distributed.launch` and its like do: become fleetrun."""

import argparse
import os
import socket
import sys
from typing import List, Sequence

from argosy._programs import find_program


def hand_over(arguments: Sequence[str]) -> None:
    """Becomes fleetrun, which runs scripts with this interpreter."""
    program = find_program("fleetrun")
    os.execve(program, [program, *arguments], dict(os.environ, ARGOSY_PYTHON=sys.executable))


def launch() -> None:
    """The launcher's flags are fleetrun's."""
    hand_over(sys.argv[1:])


def launch_ps() -> None:
    """The launcher of 1.6, with flags and defaults of its own."""
    hand_over(launch_ps_arguments(sys.argv[1:]))


def launch_ps_arguments(arguments: Sequence[str]) -> List[str]:
    """fleetrun's flags for those of launch_ps."""
    flags = _launch_ps_parser().parse_args(arguments)
    given = [f"--log_dir={flags.log_dir}"]
    if flags.endpoints:
        servers = flags.endpoints.split(",")
        if flags.server_num not in (None, len(servers)):
            raise SystemExit(f"--server_num is {flags.server_num}, but --endpoints has "
                             f"{len(servers)} addresses")
        workers = ",".join(["127.0.0.1"] * flags.worker_num)
        given += [f"--servers={flags.endpoints}", f"--workers={workers}"]
    else:
        servers = 2 if flags.server_num is None else flags.server_num
        given += [f"--server_num={servers}", f"--worker_num={flags.worker_num}"]
        if flags.start_port:
            given += [f"--start_port={flags.start_port}"]
    if not flags.print_config:
        given += ["--log_level=WARNING"]
    return [*given, flags.training_script, *flags.training_script_args]


def _launch_ps_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paddle.distributed.launch_ps",
                                     allow_abbrev=False,
                                     description="Starts servers and workers here, with fleetrun.")
    parser.add_argument("--cluster_node_ips", type=_this_machine, default="127.0.0.1",
                        help="this machine")
    parser.add_argument("--node_ip", type=_this_machine, default="127.0.0.1", help="this machine")
    parser.add_argument("--start_port", type=int, default=6170,
                        help="of the first server; 0: any that are free")
    parser.add_argument("--print_config", type=_truth, default=True,
                        help="whether the banner is printed")
    parser.add_argument("--endpoints", default="", help="addresses of the servers, HOST:PORT,...")
    parser.add_argument("--worker_num", type=int, default=2, help="workers (2)")
    parser.add_argument("--server_num", type=int, help="servers (2)")
    parser.add_argument("--log_dir", default="logs", help="folder of the logs (logs)")
    parser.add_argument("training_script", help="a .py file")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="what it gets")
    return parser


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"'{text}', expected True or False")
    return text.lower() in ("true", "1")


def _this_machine(text: str) -> str:
    if text not in ("127.0.0.1", "localhost", socket.gethostname()):
        raise argparse.ArgumentTypeError(f"'{text}': launch_ps starts processes on this machine "
                                         "only; use fleetrun with --servers and --workers for "
                                         "several")
    return text
