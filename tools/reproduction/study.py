"""Rows of a study (`study_*.py`) in a CSV file beside the tables, and the code that made them."""

import argparse
import ast
import hashlib
from functools import cache
from pathlib import Path

import pandas as pd

from reproduction.code_digest import code_digest
from reproduction.files import locked, write_text
from user_dgl import __version__
from user_dgl.config import default_config, load_config

# Names of the files, and the columns that name a row.
STUDIES = {
    "embeddings": ["set", "features", "rate", "seed"],
    "weights": ["set", "seed", "weights"],
    "num-clusters": ["set"],
}
_TEXT = {"user_dgl": str, "code": str}
_TOOLS = Path(__file__).resolve().parents[1]
_SCRIPTS = {
    "embeddings": ["study_embeddings.py"],
    "weights": ["study_weights.py"],
    "num-clusters": ["study_num_clusters.py", "study_embeddings.py"],
}


def rows_of(results: Path, study: str) -> pd.DataFrame:
    """Read the rows that a study has, without rows if it has none."""
    file = results / f"{study}.csv"
    if not file.exists():
        return pd.DataFrame(columns=[*STUDIES[study], *_TEXT])
    return pd.read_csv(file, dtype=_TEXT)


def known_rows(results: Path, study: str, stale: bool) -> set[tuple]:
    """Values of the columns that name the rows that need not be made.

    These are the rows that a study has, with ``stale`` those by the current code.
    """
    rows = rows_of(results, study)
    if stale:
        rows = rows[_by_current_code(rows, study)]
    return set(rows[STUDIES[study]].itertuples(index=False, name=None))


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--stale`` to the command of a study."""
    parser.add_argument(
        "--stale", action="store_true", help="make rows again that are older than the code"
    )


def add_rows(results: Path, study: str, rows: list[dict]) -> None:
    """Add rows to the file, with version and code; they replace rows of the same names.

    Two processes may add to one file, and the file is never seen half written.
    """
    made = {"user_dgl": __version__, "code": current_code(study)}
    with locked(results):
        kept = rows_of(results, study).to_dict("records")
        merged = {
            tuple(row[name] for name in STUDIES[study]): row
            for row in [*kept, *({**row, **made} for row in rows)]
        }
        text = pd.DataFrame(merged.values()).to_csv(
            index=False, lineterminator="\n", float_format="%.4f"
        )
        write_text(results / f"{study}.csv", text)


@cache
def current_code(study: str) -> str:
    """Digest of the scripts of a study, and of the code of a run of the default on its files."""
    settings = ["data={kind: npz, path: graph.npz}", "data.noise.kind=random_flip"]
    run = code_digest("user-dgl", "default", load_config(default_config(), settings))
    scripts = [ast.dump(ast.parse((_TOOLS / name).read_text())) for name in _SCRIPTS[study]]
    return hashlib.sha256("".join([run, *scripts]).encode()).hexdigest()[:12]


def _by_current_code(rows: pd.DataFrame, study: str) -> pd.Series:
    return rows.get("code", pd.Series(index=rows.index, dtype=object)) == current_code(study)


def stale_lines(results: Path) -> list[str]:
    """Say of each study how many of its rows other code than the current one has made."""
    lines = []
    for study in STUDIES:
        rows = rows_of(results, study)
        old = int((~_by_current_code(rows, study)).sum())
        if old:
            lines.append(f"{study}: of {len(rows)} rows {old} older than the code")
    return lines
