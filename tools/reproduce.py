"""Reproduce every table and figure: ``python tools/reproduce.py TABLE``, or ``all`` of them.

Each training is a process of its own, and its scores are one row of RESULTS/TABLE.csv. A run that
is stopped goes on where it was; a row that was made with other settings than the current ones is
made again, and with --stale also one that was made by older code. ``status`` lists both kinds. The
script also writes TABLE.md and the figures. ``reproduction/plan.py`` says what each table consists
of.
Exit status: 0 done, 1 some cells failed, 2 unusable options, 130 interrupted.
"""

import argparse
import importlib.util
import os
import signal
import sys
from pathlib import Path

from reproduction import plan, readme, status, study, tables
from reproduction.cells import Cell, current_rows, grouped, run_cells, survey
from reproduction.files import write_text

DESCRIPTIONS = {
    "random-noise": "NMI, ACC and ARI under random flips, beside floors and paper",
    "meta-attack": "the same on published attacked graphs",
    "baselines": "the default and the paper's baselines, by this code, beside the paper's figures",
    "meta-attack-own": "the same under our own meta-attack",
    "supported": "each model.encoder with USER and without",
    "default": "the default config on every graph with labels, beside its floors and other tools",
    "defence": "GCN, GAT and SAGE on attacked graphs, as they are and cleaned; DeepRobust",
    "large": "the real graphs of configs/large: NMI, floors, time and memory",
    "parts": "training in parts against the full batch",
    "link": "AUC and AP of link prediction under random flips, beside floors, GAE and paper",
    "ablation": "the default without one part at a time, and the paper's ablation",
    "parameters": "alpha and beta of the paper's model, with line plots",
    "case-study": "heat maps of the clean, the noisy and the learned graph",
    "all": "all of the above in order",
}
RESULTS = Path(__file__).with_name("results")
WITH_FIGURES = ("parameters", "case-study")


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
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.table == "pages":
        write_pages(arguments.results)
        return 0
    if arguments.table == "status":
        lines = status.stale_lines(plan.TABLES, arguments.results, arguments.cells)
        lines += study.stale_lines(arguments.results)
        print("\n".join(lines), end="\n" if lines else "")
        return int(bool(lines))
    names = list(plan.TABLES) if arguments.table == "all" else [arguments.table]
    whole = {name: plan.TABLES[name]() for name in names}
    wanted = {
        "dataset": arguments.datasets,
        "method": arguments.methods,
        "rate": arguments.rates,
        "seed": arguments.seeds,
    }
    selected = {
        name: plan.select(plan.thin(cells) if arguments.thin else cells, **wanted)
        for name, cells in whole.items()
    }
    if not any(selected.values()):
        _nothing_selected(parser, [cell for cells in whole.values() for cell in cells])
    if arguments.dry_run:
        for cells in selected.values():
            _list_missing(cells, arguments.results, arguments.force, arguments.stale)
        return 0
    figures = [name for name in WITH_FIGURES if selected.get(name)]
    if figures and importlib.util.find_spec("matplotlib") is None:
        parser.error(f"{figures[0]} draws with matplotlib: pip install 'user_dgl[plot]'")
    # A plain kill then also ends the trainings and keeps the finished cells.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = False
    for name, cells in selected.items():
        if not cells:
            continue
        print(f"{name}: {len(cells)} cells", flush=True)
        outcome = run_cells(
            cells, arguments.results, arguments.jobs, arguments.force, arguments.stale
        )
        write_report(name, whole[name], arguments.results)
        for line in grouped(outcome.failed):
            print(f"failed: {line}", file=sys.stderr)
        for line in grouped(outcome.left_out):
            print(f"left out: {line}", file=sys.stderr)
        if outcome.interrupted:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return 130
        failed = failed or bool(outcome.failed)
    return int(failed)


def write_pages(results: Path) -> None:
    """Write each page that is there again from the CSV files, and the tables of two READMEs.

    Parameters
    ----------
    results : Path
        The READMEs are the one in this folder and the one two folders above.
    """
    tables_of: dict[str, tuple] = {}
    for name, make in plan.TABLES.items():
        cells = make()
        rows = current_rows(cells, results)
        tables_of[name] = rows, cells
        page = results / f"{name}.md"
        if page.exists():
            write_text(page, tables.report(name, rows, cells))
    readme.fill(results / "README.md", tables_of)
    front = results.resolve().parents[1] / "README.md"
    if front.exists():
        readme.fill_front(front, tables_of)


def write_report(table: str, cells: list[Cell], results: Path) -> None:
    """Write the Markdown page and the figures of the finished cells.

    Parameters
    ----------
    table : str
    cells : list of Cell
        All cells of the table, not only those that have just run.
    results : Path
    """
    rows = current_rows(cells, results)
    file = results / f"{table}.md"
    write_text(file, tables.report(table, rows, cells))
    print(file)
    if table in WITH_FIGURES and len(rows):
        from reproduction import figures

        if table == "parameters":
            drawn = figures.draw_parameters(rows, results)
        else:
            finished = survey(cells, results).finished
            drawn = figures.draw_case_study(finished, results)
        print("\n".join(map(str, drawn)))


def numbers(text: str) -> list[int]:
    """Parse a list of whole numbers and ranges.

    >>> numbers("0-2,5")
    [0, 1, 2, 5]
    """
    found = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise argparse.ArgumentTypeError(f"{text!r}: expected numbers such as 0-9 or 0,1,2")
        found += range(int(first), int(last if dash else first) + 1)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shared = argparse.ArgumentParser(add_help=False)
    add = shared.add_argument
    cores = len(os.sched_getaffinity(0))
    add("--jobs", type=_positive, default=cores, metavar="N", help="processes; default: one a core")
    add("--seeds", type=numbers, metavar="0-9|0,1,2", help="only these seeds of the table")
    add("--datasets", type=_names, metavar="A,B", help="only these data sets")
    add("--rates", type=numbers, metavar="0,50", help="only these rates of noise, in percent")
    add("--methods", type=_names, metavar="A,B", help="only these; names optional ones too")
    add(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="DIR",
        help="folder of CSV files, tables and pictures; default: results beside this script",
    )
    add("--thin", action="store_true", help="two seeds, the lowest and the highest rate of noise")
    add("--dry-run", action="store_true", help="list the cells that would run, and stop")
    add(
        "--stale", action="store_true", help="run finished cells again that are older than the code"
    )
    add("--force", action="store_true", help="run all finished cells again")
    commands = parser.add_subparsers(dest="table", required=True, metavar="TABLE")
    for name, text in DESCRIPTIONS.items():
        commands.add_parser(name, help=text, description=text, parents=[shared])
    results = argparse.ArgumentParser(add_help=False)
    results.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    text = "write the pages and the tables of two READMEs again from the CSV files"
    commands.add_parser("pages", help=text, description=text, parents=[results])
    text = "list the tables with rows of older code or of other settings; exit status 1 if any"
    command = commands.add_parser("status", help=text, description=text, parents=[results])
    command.add_argument("--cells", action="store_true", help="list each such cell too")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of 1 or more")
    return int(text)


def _names(text: str) -> list[str]:
    return text.split(",")


def _nothing_selected(parser, cells: list[Cell]) -> None:
    there = (
        f"{name}s {', '.join(dict.fromkeys(str(getattr(cell, name)) for cell in cells))}"
        for name in ("dataset", "method", "rate", "seed")
    )
    parser.error(f"no cell is selected; there are {'; '.join(there)}")


def _list_missing(cells: list[Cell], results: Path, force: bool, stale: bool) -> None:
    state = survey(cells, results, read="unread")
    again = state.finished if force else state.stale if stale else []
    for name, listed in (
        ("missing", state.missing),
        ("of other settings", state.changed),
        ("finished" if force else "older than the code", again),
    ):
        for cell in listed:
            print(f"{name}: {cell}")
    for line in grouped(state.unusable):
        print(f"unusable: {line}")
    if cells:
        print(
            f"{cells[0].table}: {len(state.finished)} finished, {len(state.missing)} missing, "
            f"{len(state.changed)} of other settings, {len(state.unusable)} unusable; of the "
            f"finished {len(state.stale)} older than the code"
        )


if __name__ == "__main__":
    sys.exit(main())
