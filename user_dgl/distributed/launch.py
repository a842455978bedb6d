"""``user-dgl launch``: runs ``user-dgl train`` as several processes, on one machine or several.

``user-dgl launch --nproc 2 -- train CONFIG [section.key=value ...]``

On several machines, start the same command on each of them, with its own ``--node-rank`` and the
``--master-addr`` of the first one. All machines must see the output directory. Torch's elastic
agent, the engine of torchrun, starts and watches the processes. The exit status is the status of
the process that failed first, so 2 for unusable input and 3 for a non-finite loss; it is 130 after
Ctrl-C.
"""

import argparse
import dataclasses
import logging
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from user_dgl.config import Config, default_config, load_config
from user_dgl.data.attributed_graph import one_line
from user_dgl.errors import InputError

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

# Last lines of a failed process's log that are shown.
_LAST_LINES = 20
# Seconds that the present epoch may take after Ctrl-C. The agent of older torch allows 30.
_EPOCH_S = 600
# Exit status of a process that has lost another process.
_LOST = 4
_LAST_PORT = 65535


def main(argv: list[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; default: those of the process.

    Returns
    -------
    int
        Exit status.
    """
    arguments = _parse(argv)
    nproc = arguments.nproc
    command = ["-P", "-m", "user_dgl", *_with_backend(arguments.command, arguments.backend)]
    cores = len(os.sched_getaffinity(0))
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // nproc)))
    with tempfile.TemporaryDirectory(prefix="user-dgl-") as folder:
        return _launch(arguments, nproc, command, Path(folder))


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="user-dgl launch",
        description="Run user-dgl train as several processes, on one machine or several.",
        usage="%(prog)s [options] -- train CONFIG [section.key=value ...]",
    )
    parser.add_argument(
        "--nproc",
        type=_positive,
        help="processes on this machine; default: one for each GPU, or 1 without a GPU",
    )
    parser.add_argument(
        "--backend",
        choices=("gloo", "nccl"),
        help="communication backend, as distributed.backend; gloo lets processes share a GPU",
    )
    parser.add_argument("--nnodes", type=_positive, default=1, help="machines; default: 1")
    parser.add_argument("--node-rank", type=int, default=0, help="number of this machine, from 0")
    parser.add_argument("--master-addr", help="address of machine 0")
    parser.add_argument("--master-port", type=_port, default=29400, help="default: 29400")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="train ..., after --")
    arguments = parser.parse_args(argv)
    if arguments.command[0] != "train":
        parser.error(f"{arguments.command[0]} runs as one process: user-dgl {arguments.command[0]}")
    if arguments.nnodes > 1 and not arguments.master_addr:
        parser.error("--nnodes needs --master-addr, the address of machine 0")
    if not 0 <= arguments.node_rank < arguments.nnodes:
        parser.error(f"--node-rank {arguments.node_rank}: expected 0..{arguments.nnodes - 1}")
    import torch

    config = _settings_of(arguments.command)
    if config is None:
        fits_gpu = "device=cpu" not in arguments.command
        shared = "distributed.backend=gloo" in arguments.command
    else:
        fits_gpu = config.device != "cpu" and config.fits_gpu
        shared = config.distributed.backend == "gloo"
    gpus = torch.cuda.device_count() if fits_gpu else 0
    if shared:
        arguments.backend = arguments.backend or "gloo"
    arguments.nproc = arguments.nproc or max(gpus, 1)
    if gpus and arguments.nproc > gpus and arguments.backend != "gloo":
        parser.error(
            f"--nproc {arguments.nproc}: more processes than the {gpus} GPUs here: start fewer, or "
            "let them share with --backend gloo"
        )
    return arguments


def _settings_of(command: list[str]) -> Config | None:
    """Settings of a command, or None if they cannot be read, which its processes report."""
    # A command with options for its files may do without CONFIG, which comes first.
    first, overrides = command[1:2], [w for w in command[1:] if "=" in w and w[0] != "-"]
    named = first and first[0] not in overrides and not first[0].startswith("-")
    try:
        return load_config(first[0] if named else default_config(), overrides)
    except InputError:
        return None


def _with_backend(command: list[str], backend: str | None) -> list[str]:
    """Add the backend to the settings of the command, which end where its options begin."""
    if backend is None:
        return command
    end = next((at for at, word in enumerate(command) if word.startswith("-")), len(command))
    return [*command[:end], f"distributed.backend={backend}", *command[end:]]


def _launch(arguments: argparse.Namespace, nproc: int, command: list[str], folder: Path) -> int:
    """Run the processes to their end, and return the exit status."""
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # A failed process reports its error itself; the agent would report it again.
    logging.disable(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=arguments.nnodes,
        max_nodes=arguments.nnodes,
        nproc_per_node=nproc,
        max_restarts=0,
        monitor_interval=0.1,
        start_method="spawn",
        **_rendezvous(arguments, folder),
        **_logs(LaunchConfig, nproc, folder),
        **_shutdown_timeout(LaunchConfig),
    )
    try:
        elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as error:
        return _failed(_cause(error.failures), folder / "logs")
    except SignalException as error:
        print("launch: stopped", file=sys.stderr)
        return 128 + error.sigval
    except KeyboardInterrupt:
        print("launch: stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except DistError as error:  # the machines have not found each other
        if arguments.nnodes == 1:
            raise
        place = f"{arguments.master_addr}:{arguments.master_port}"
        print(
            f"launch: {place}: {one_line(error)}: check that machine 0 has this address, that no "
            "other program has the port there, and that the command runs on all machines",
            file=sys.stderr,
        )
        return _LOST
    return 0


def _rendezvous(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Configure how the agents find each other, and how their processes do."""
    if arguments.nnodes == 1:
        # A file, and sockets on the loopback interface only: nothing listens to the outside.
        os.environ["USER_DGL_STORE"] = str(folder / "store")
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = _loopback()
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        return {
            "run_id": "user-dgl",
            "rdzv_backend": "c10d",
            "rdzv_endpoint": str(folder / "rendezvous"),
            "rdzv_configs": {"store_type": "file"},
            "local_addr": "127.0.0.1",
        }
    os.environ.pop("USER_DGL_STORE", None)
    return {
        "run_id": "user-dgl",
        "rdzv_backend": "static",
        "rdzv_endpoint": f"{arguments.master_addr}:{arguments.master_port}",
        "rdzv_configs": {"rank": arguments.node_rank},
    }


def _loopback() -> str:
    """Return the name of the loopback interface."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), names[0])


def _shutdown_timeout(launch_config: type) -> dict[str, Any]:
    """Set how long processes may take to finish their epoch after they were asked to stop."""
    fields = {field.name for field in dataclasses.fields(launch_config)}
    return {"shutdown_timeout": _EPOCH_S} if "shutdown_timeout" in fields else {}


def _logs(launch_config: type, nproc: int, folder: Path) -> dict[str, Any]:
    """Send the output of the first process to the terminal, and that of the others to files."""
    from torch.distributed.elastic.multiprocessing import Std

    redirects = {rank: Std.ALL for rank in range(1, nproc)} or Std.NONE
    logs = folder / "logs"
    logs.mkdir()
    if "logs_specs" in {field.name for field in dataclasses.fields(launch_config)}:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs

        return {"logs_specs": DefaultLogsSpecs(log_dir=str(logs), redirects=redirects)}
    return {"log_dir": str(logs), "redirects": redirects}


def _cause(failures: dict[int, "ProcessFailure"]) -> "ProcessFailure":
    """Return the failure that caused the others; one that lost another process is not a cause."""
    return min(
        failures.values(), key=lambda failure: (failure.exitcode == _LOST, failure.timestamp)
    )


def _failed(failure: "ProcessFailure", logs: Path) -> int:
    """Show the log of a failed process, unless it is the first one, and return the exit status."""
    for log in logs.rglob(f"{failure.local_rank}/stderr.log") if failure.local_rank else ():
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        print("\n".join(lines), file=sys.stderr)
    code = failure.exitcode
    if code < 0:
        name = f"process {failure.local_rank}"
        print(f"launch: {name} was ended by signal {-code}", file=sys.stderr)
        return 128 - code
    return code or 1


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to {_LAST_PORT}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 1 or more")
    return int(text)
