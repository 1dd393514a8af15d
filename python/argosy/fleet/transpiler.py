"""Training over servers by addresses that the script gives itself."""

from typing import Any, List, Optional, Sequence

from argosy import _core
from argosy.fleet._fleet import Fleet
from argosy.static import Program, default_main_program


class DistributeTranspilerConfig:
    """How a program is split. Fields as in the 1.x releases; other names are refused."""

    _fields = {"slice_var_up": True, "split_method": None, "min_block_size": 8192,
               "enable_dc_asgd": False, "mode": "pserver", "wait_port": True, "print_log": False,
               "sync_mode": True, "runtime_split_send_recv": False, "half_async": False,
               "completely_not_async": False, "geo_sgd_mode": False, "geo_sgd_need_push_nums": 100}
    _fixed = {"slice_var_up": True, "split_method": None, "min_block_size": 8192,
              "enable_dc_asgd": False, "mode": "pserver", "completely_not_async": False}

    def __init__(self) -> None:
        self.__dict__.update(self._fields)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"DistributeTranspilerConfig has no field '{name}', it has "
                                 f"{', '.join(self._fields)}")
        if name in self._fixed and value != self._fixed[name]:
            raise _core.ConfigError(f"DistributeTranspilerConfig.{name}={value!r} is not supported, "
                                    f"expected {self._fixed[name]!r}")
        self.__dict__[name] = value

    def _engine(self) -> dict:
        """The engine's words."""
        if self.geo_sgd_mode:
            return {"a_sync": True, "k_steps": int(self.geo_sgd_need_push_nums)}
        if self.half_async:
            return {"a_sync": True, "half_async": True}
        return {"a_sync": not self.sync_mode}


class PserverProgram:
    """What one server holds; exe.run(it) serves until every trainer has left."""

    def __init__(self, transpiler: "DistributeTranspiler", endpoint: str):
        self._transpiler, self._endpoint = transpiler, endpoint

    def run_by(self, executor: Any, feed: Any, fetch_list: Any) -> List[Any]:
        fleet = self._transpiler._fleet(server=True, index=self._transpiler._index(self._endpoint))
        fleet.run_server()
        return []

    def __repr__(self) -> str:
        return f"server {self._endpoint} of {self._transpiler._program!r}"


class PserverStartup:
    """The first values of what one server holds: it draws them when it makes its tables."""

    def run_by(self, executor: Any, feed: Any, fetch_list: Any) -> List[Any]:
        return []


class DistributeTranspiler:
    """transpile(), then get_trainer_program() in trainers, get_pserver_program() in servers."""

    def __init__(self, config: Optional[DistributeTranspilerConfig] = None):
        self.config = config or DistributeTranspilerConfig()
        self._program: Optional[Program] = None
        self._servers: List[str] = []
        self._trainers = 1
        self._trainer_id = 0
        self._made: Optional[Fleet] = None

    def transpile(self, *args: Any, **kwargs: Any) -> None:
        """transpile(trainer_id, program, pservers, trainers, sync_mode, startup_program,
        current_endpoint), or with (optimize_ops, params_grads) in front as the first releases."""
        names = ["trainer_id", "program", "pservers", "trainers", "sync_mode", "startup_program",
                 "current_endpoint"]
        old = ["trainer_id", "program", "pservers", "trainers", "split_method", "sync_mode"]
        if args and isinstance(args[0], (list, tuple)) or "optimize_ops" in kwargs:
            names, args = old, args[2:]
            kwargs = {k: v for k, v in kwargs.items() if k not in ("optimize_ops", "params_grads")}
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names or name in given:
                raise TypeError(f"transpile: argument '{name}' is unknown or given twice, expected "
                                f"{', '.join(names)}")
            given[name] = value
        self._take(**given)

    def _take(self, trainer_id: int = 0, program: Optional[Program] = None,
              pservers: str = "127.0.0.1:6174", trainers: int = 1, sync_mode: Optional[bool] = None,
              startup_program: Any = None, current_endpoint: str = "",
              split_method: Any = None) -> None:
        if split_method is not None:
            raise _core.ConfigError("transpile: split_method is not supported, expected None")
        program = program or default_main_program()
        if program.record.minimized is None:
            raise _core.ConfigError("transpile: optimizer.minimize() comes first, it says what is "
                                    "trained")
        self._program = program
        self._servers = [server.strip() for server in pservers.split(",") if server.strip()]
        self._trainers, self._trainer_id = int(trainers), int(trainer_id)
        self._strategy = self.config._engine()
        if sync_mode is not None and not self.config.geo_sgd_mode:
            self._strategy["a_sync"] = self._strategy["a_sync"] or not sync_mode

    def _fleet(self, server: bool, index: int) -> Fleet:
        if self._program is None:
            raise _core.ConfigError("DistributeTranspiler: transpile() comes first")
        if self._made is None:
            fleet = Fleet()
            fleet._core.init_role(server, index, self._trainers, self._servers)
            fleet._initialised = True
            fleet._program, fleet._pending = self._program, self._strategy
            self._program.record.fleet = fleet
            self._made = fleet
        return self._made

    def _index(self, endpoint: str) -> int:
        if endpoint not in self._servers:
            raise _core.ConfigError(f"'{endpoint}' is not among the servers "
                                    f"{', '.join(self._servers)}")
        return self._servers.index(endpoint)

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """The program, which trains over the servers from now on."""
        self._fleet(server=False, index=self._trainer_id)
        return self._program

    def get_pserver_program(self, endpoint: str) -> PserverProgram:
        """What the server at this address runs."""
        self._index(endpoint)
        return PserverProgram(self, endpoint)

    def get_pserver_programs(self, endpoint: str) -> Sequence[Any]:
        """The program of a server, and the one for its first values."""
        return self.get_pserver_program(endpoint), PserverStartup()

    def get_startup_program(self, endpoint: str, pserver_program: Any = None,
                            startup_program: Any = None) -> PserverStartup:
        """The first values of what the server holds."""
        self._index(endpoint)
        return PserverStartup()
