"""The command ``user-dgl``.

Exit status: 0 done, 2 bad input, 3 non-finite loss, 4 lost process, 128 + n stopped by signal n.
"""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import user_dgl
from user_dgl.config import Config, load_config, to_yaml
from user_dgl.config.arguments import count, path, positive, seed, weight
from user_dgl.config.own_files import OwnFiles, clean_settings, inspected_configs, run_settings
from user_dgl.config.paths import user_path
from user_dgl.config.schema import reference
from user_dgl.errors import InputError, ReportedError
from user_dgl.runtime.exit_status import exit_status
from user_dgl.runtime.process import discard_stdout, first_of_machine, launched

# Commands import torch, DGL and scikit-learn when they run, because these take seconds to import.

# Seconds that the other processes of a machine give the first one to report an error of all. The
# launcher ends them as soon as it has.
_REPORT_S = 30


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
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An id that a terminal cannot show must not end a run. Files and pipes get UTF-8, as all
        # files that the program writes.
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if launched() and argv[:1] == ["launch"]:
        print(
            "user-dgl: error: launch starts processes itself: use it without torchrun",
            file=sys.stderr,
        )
        return 2
    if argv[:1] == ["launch"]:  # the words after -- are a command line of their own
        from user_dgl.distributed.launch import main as launch

        return launch(argv[1:])
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    # argparse takes positional arguments only up to the first option.
    if any(part.startswith("-") for part in rest) or (rest and not hasattr(arguments, "overrides")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.overrides += rest
    status = exit_status(lambda: _run(arguments))
    if "RANK" in os.environ:
        # One of several processes, whose files are all written. Threads of the process group may
        # still be at work or have lost a member. They would abort Python's exit and so change the
        # status.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _run(arguments: argparse.Namespace) -> int | None:
    if launched() and arguments.run is not _train:
        raise _of_all(f"{arguments.command} runs as one process: use it without torchrun")
    return arguments.run(arguments)


def _of_all(message: str) -> InputError:
    """Make the error that all processes of a machine have found, which one of them reports."""
    if not launched() or first_of_machine():
        return InputError(message)
    time.sleep(_REPORT_S)
    return ReportedError(message)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="user-dgl", description=user_dgl.__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="print versions and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[argparse.Namespace], int | None] | None, text: str
    ) -> argparse.ArgumentParser:
        """Add a command that calls a function with its arguments."""
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=function)
        return sub

    def takes_config(sub: argparse.ArgumentParser, needed: bool = True) -> None:
        """Let a command take a config and overrides."""
        sub.add_argument(
            "config", metavar="CONFIG", help="YAML file", nargs=None if needed else "?"
        )
        sub.add_argument("overrides", nargs="*", metavar="section.key=value", help="settings")

    def takes_files(sub: argparse.ArgumentParser) -> None:
        """Let a command take one's own files as options."""
        sub.add_argument(
            "--edges",
            metavar="FILE",
            help="edges as text (CSV, TSV, blanks), .npz, .npy, .mtx, .mat, .bin or .dgl"
            " (dgl.save_graphs), .graphml, .gexf, .gml, Pajek, .adjlist or node-link JSON",
        )
        sub.add_argument(
            "--features",
            metavar="FILE",
            help="features of the nodes: text, .npy, .npz, .mtx or .mat",
        )
        sub.add_argument(
            "--labels",
            metavar="FILE",
            help="classes of the nodes, used only for scores and by data.noise.kind=metattack",
        )

    sub = command("train", _train, "train and write a run directory")
    sub.usage = (
        "user-dgl train CONFIG [section.key=value ...]\n"
        "       user-dgl train --edges FILE [--features FILE] [--labels FILE] --clusters K "
        "[section.key=value ...]"
    )
    sub.add_argument(
        "overrides",
        nargs="*",
        metavar="[CONFIG] section.key=value",
        help="YAML file, which is optional with --edges, and settings",
    )
    takes_files(sub)
    sub.add_argument("--clusters", metavar="K", help="clusters to find (model.num_clusters)")
    sub.add_argument(
        "--quiet", action="store_true", help="print only warnings and the result, no progress"
    )
    sub = command("inspect", _inspect, "describe what train would read, without training")
    sub.add_argument(
        "overrides",
        nargs="*",
        metavar="FILE",
        help="files of edges, or YAML files; and settings, section.key=value",
    )
    takes_files(sub)
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = command("clean", _clean, "weigh the edges of a graph by how far they can be trusted")
    sub.add_argument(
        "overrides",
        nargs="*",
        metavar="section.key=value",
        help="settings of the reading of files: data.* and features.categorical",
    )
    sub.add_argument("--edges", required=True, metavar="FILE", help="edges, as for train")
    sub.add_argument("--features", metavar="FILE", help="features of the nodes, as for train")
    sub.add_argument(
        "--out", required=True, type=path, metavar="FILE", help="A' (.csv, .npz, .bin of DGL)"
    )
    sub.add_argument(
        "--doubtful", type=path, metavar="FILE.csv", help="most doubtful edges; default: print them"
    )
    kept = sub.add_mutually_exclusive_group()
    kept.add_argument(
        "--threshold",
        type=weight,
        metavar="T",
        help="pairs that weigh T or more; 1: the mean weight of the graph as given",
    )
    kept.add_argument("--top-k", type=positive, metavar="K", help="K heaviest pairs of each node")
    sub.add_argument(
        "--power", type=weight, metavar="P", help="power of the weights; default: by the noise"
    )
    sub.add_argument(
        "--candidates", type=count, default=30, metavar="C",
        help="pairs of each node that may be added; 0 adds none; default: 30",
    )  # fmt: skip
    sub.add_argument("--seed", type=seed, default=0, metavar="S", help="default: 0")
    sub.add_argument("--overwrite", action="store_true", help="replace files that exist")
    sub = command("config", _config, "check the settings and print them resolved")
    takes_config(sub, needed=False)
    sub.add_argument(
        "--reference", action="store_true", help="print every key with default and meaning instead"
    )
    sub = command("perturb", _perturb, "write the noisy graph of a config, for data.noise.file")
    takes_config(sub)
    sub.add_argument(
        "--out", required=True, type=path, metavar="FILE.npz", help="overwrite=true replaces it"
    )
    sub = command(
        "convert", _convert, "write the data set of a config as one npz file, for data.path"
    )
    takes_config(sub)
    sub.add_argument(
        "--out", required=True, type=path, metavar="FILE.npz", help="overwrite=true replaces it"
    )
    sub = command("partition", _partition, "split the graph of a config, for distributed.partition")
    takes_config(sub)
    sub.add_argument(
        "--parts", required=True, type=positive, metavar="P", help="number of processes"
    )
    sub.add_argument("--out", required=True, type=path, metavar="DIR")
    command("launch", None, "run train as several processes: user-dgl launch --help")
    sub = command("evaluate", _evaluate, "recompute the scores of a run and print them as JSON")
    sub.add_argument("run_dir", type=path, metavar="RUN_DIR")
    sub.add_argument(
        "--labels", type=path, metavar="FILE", help="labels in node order or with node ids"
    )
    sub = command("report", _report, "write report.html, a page about a run, into its directory")
    sub.add_argument("run_dir", type=path, metavar="RUN_DIR")
    sub = command("export", _export, "write the cleaned graph, clusters or embeddings of a run")
    sub.add_argument("run_dir", type=path, metavar="RUN_DIR")
    sub.add_argument("--graph", type=path, metavar="FILE", help="edges of A' (.csv, .npz)")
    chosen = sub.add_mutually_exclusive_group()
    chosen.add_argument(
        "--threshold",
        type=weight,
        metavar="T",
        help="only edges that weigh T or more; 1: the mean weight of the run's graph",
    )
    chosen.add_argument(
        "--top-k", type=positive, metavar="K", help="only the K heaviest edges of each node"
    )
    sub.add_argument("--clusters", type=path, metavar="FILE.csv", help="node ids and clusters")
    sub.add_argument(
        "--embedding", type=path, metavar="FILE", help="embeddings (.npy), with node ids (.csv)"
    )
    sub.add_argument("--overwrite", action="store_true", help="replace files that exist")
    sub = command(
        "predict-links", _predict_links, "score pairs of nodes by a run of task link_prediction"
    )
    sub.add_argument("run_dir", type=path, metavar="RUN_DIR")
    asked = sub.add_mutually_exclusive_group(required=True)
    asked.add_argument("--pairs", type=path, metavar="FILE", help="two node ids in each row")
    asked.add_argument("--top-k", type=positive, metavar="K", help="K new links of every node")
    sub.add_argument("--out", type=path, metavar="FILE.csv", help="default: print the links")
    return parser


class _Version(argparse.Action):
    """Prints the versions of the packages."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from user_dgl.runtime.versions import versions

        print(
            "\n".join(f"{name} {number or 'not installed'}" for name, number in versions().items())
        )
        try:
            from user_dgl import _dgl
        except InputError as error:
            print(error)
        else:
            print("DGL runs " + ("guarded (without GraphBolt)" if _dgl.guarded else "unguarded"))
        parser.exit()


def _train(arguments: argparse.Namespace) -> None:
    try:
        file, overrides, name = run_settings(
            arguments.overrides, _files(arguments), arguments.clusters
        )
        config = load_config(file, overrides)
    except InputError as error:
        raise _of_all(str(error)) from None
    default = f"outputs/{name}/seed{config.seed}"
    output_dir = user_path(config.output_dir or default, "output_dir")
    log, shows = (_log_warnings if arguments.quiet else _log), not arguments.quiet
    if launched():
        from user_dgl.distributed.run import train as train_together

        result = train_together(config, output_dir, log, shows)
        if result is None:  # the first process reports
            return
    else:
        from user_dgl.pipeline.train import train

        result = train(config, output_dir, log, shows)
    _log(_summary_line(result))
    for name, metrics in result.get("floors", {}).items():
        _log(f"Floor {name} | {_metrics_text(metrics)}")


def _inspect(arguments: argparse.Namespace) -> int:
    named = inspected_configs(arguments.overrides, _files(arguments))
    from user_dgl.pipeline.inspection import print_inspections

    return print_inspections(named, arguments.json, sys.stdout)


def _files(arguments: argparse.Namespace) -> OwnFiles:
    return OwnFiles(arguments.edges, arguments.features, arguments.labels)


def _clean(arguments: argparse.Namespace) -> None:
    files = OwnFiles(arguments.edges, arguments.features)
    config = clean_settings(arguments.overrides, files)
    from user_dgl.pipeline.clean import CleanRequest, clean_files

    request = CleanRequest(
        config.data,
        config.features.categorical,
        arguments.out,
        arguments.doubtful,
        arguments.threshold,
        arguments.top_k,
        arguments.power,
        arguments.candidates,
        arguments.seed,
        arguments.overwrite,
    )
    clean_files(request, _log)


def _config(arguments: argparse.Namespace) -> None:
    if arguments.reference:
        print(reference(Config))
        return
    if arguments.config is None:
        raise InputError("config: name a YAML file, or give --reference")
    config = load_config(arguments.config, arguments.overrides)
    if config.model.kind != "user":
        from user_dgl.baselines import resolve_baseline

        config, _ = resolve_baseline(config)
    print(to_yaml(config), end="")


def _perturb(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, arguments.overrides)
    _check_graph_file(arguments.out, config)
    from user_dgl.perturb.stored import recipe_of, write_graph
    from user_dgl.pipeline.inputs import load_noisy_data
    from user_dgl.runtime.files import write_atomically

    for line in config.inert_settings():
        if line.startswith("data."):
            _log(f"Warning: {line}")
    data, noisy, _ = load_noisy_data(config, _log)
    if not noisy.num_added + noisy.num_removed:
        _log("Warning: nothing is flipped: the file has the clean graph (data.noise)")
    recipe = recipe_of(config, data.graph)
    write_atomically(arguments.out, lambda file: write_graph(file, noisy.graph, recipe))
    print(
        f"{arguments.out}: {noisy.graph.num_edges} edges, {noisy.num_added} added, "
        f"{noisy.num_removed} removed"
    )


def _convert(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, arguments.overrides)
    _check_graph_file(arguments.out, config)
    from user_dgl.data import load_data
    from user_dgl.data.formats.npz import write_npz
    from user_dgl.runtime.files import write_atomically

    data = load_data(config.data, config.features.categorical)
    for note in data.notes:
        _log(f"Note: {note}")
    if config.data.noise.kind != "none":
        _log("Note: the noise of the settings is not in the file: user-dgl perturb adds it")
    write_atomically(arguments.out, lambda file: write_npz(file, data))
    print(f"{arguments.out}: {data.num_nodes} nodes, {data.graph.num_edges} edges")


def _partition(arguments: argparse.Namespace) -> None:
    config = load_config(arguments.config, arguments.overrides)
    from user_dgl.distributed.partition import write_partition

    for rank, sizes in enumerate(write_partition(config, arguments.parts, arguments.out, _log)):
        shown = ", ".join(f"{count} {name}" for name, count in sizes.items())
        print(f"rank {rank}: {shown}")


def _evaluate(arguments: argparse.Namespace) -> None:
    from user_dgl.pipeline.evaluate import evaluate

    def note(line: str) -> None:
        with suppress(OSError):  # nobody may read them
            print(f"Note: {line}", file=sys.stderr)

    report = evaluate(arguments.run_dir, arguments.labels, note)
    print(json.dumps(report, indent=2, allow_nan=False))


def _report(arguments: argparse.Namespace) -> None:
    from user_dgl.output.report.report import write_report

    path, missing = write_report(arguments.run_dir)
    if missing:
        print(f"Note: not there yet, so the report is without: {', '.join(missing)}")
    print(path)


def _export(arguments: argparse.Namespace) -> None:
    from user_dgl.output.export import Targets, export

    lines = export(
        arguments.run_dir,
        Targets(arguments.graph, arguments.clusters, arguments.embedding),
        threshold=arguments.threshold,
        top_k=arguments.top_k,
        overwrite=arguments.overwrite,
    )
    print("\n".join(lines))


def _predict_links(arguments: argparse.Namespace) -> None:
    from user_dgl.runtime.files import check_output_file, write_atomically

    out = arguments.out
    if out is not None:
        check_output_file(out, (".csv",))
    from user_dgl.links.prediction import predict_new_links, predict_pairs
    from user_dgl.output.tables import csv_text

    if arguments.pairs is not None:
        table = predict_pairs(arguments.run_dir, arguments.pairs)
    else:
        table, without = predict_new_links(arguments.run_dir, arguments.top_k)
        if without:
            note = f"Note: {without} nodes get no links: no features, or no new node is near"
            print(note, file=sys.stderr)
    text = csv_text(table, "%.4f")
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, lambda file: file.write(text.encode()))
        print(f"{out}: {len(table)} pairs")


def _check_graph_file(out: Path, config: Config) -> None:
    """Refuse a file that cannot be written, or that must not be replaced."""
    from user_dgl.data.load import named_files
    from user_dgl.runtime.files import check_output_file

    kept, replace = named_files(config.data), config.overwrite
    check_output_file(out, (".npz",), kept=kept, replace=replace, remedy="overwrite=true")


def _log(line: str) -> None:
    """Print a line, above the progress bar if there is one on the terminal."""
    from tqdm import tqdm

    if sys.stdout is None:  # it was closed before the program started
        return
    try:
        tqdm.write(line)
        sys.stdout.flush()  # so that a file shows how far a run is
    except OSError:
        # The run goes on if the reader has gone (`user-dgl train X | head`) or the disk is full.
        discard_stdout()


def _log_warnings(line: str) -> None:
    """Print a line only if it is a warning, for ``--quiet``."""
    if line.startswith("Warning:"):
        _log(line)


def _metrics_text(metrics: dict[str, float | None]) -> str:
    return " | ".join(
        f"{name.upper()} {'-' if value is None else format(value, '.2f')}"
        for name, value in metrics.items()
    )


def _summary_line(result: dict[str, Any]) -> str:
    return (
        f"Result | {_metrics_text(result['metrics'])} | "
        f"{result['num_clusters_found']} of {result['num_clusters']} clusters | "
        f"{result['seconds_total']:.1f} s | {result['peak_memory_mb']:.0f} MB"
    )
