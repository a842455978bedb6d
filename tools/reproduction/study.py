"""Rows of a study (`study_*.py`) in a CSV file beside the tables, and the code that made them."""

from functools import cache
from pathlib import Path

import pandas as pd

from reproduction.cells import locked, write_text
from reproduction.code_digest import code_digest
from user_dgl import __version__
from user_dgl.config import default_config, load_config

# Names of the files, and the columns that name a row.
STUDIES = {
    "embeddings": ["set", "features", "rate", "seed"],
    "weights": ["set", "seed", "weights"],
    "num-clusters": ["set"],
}
_TEXT = {"user_dgl": str, "code": str}


def rows_of(results: Path, study: str) -> pd.DataFrame:
    """Read the rows that a study has, without rows if it has none."""
    file = results / f"{study}.csv"
    if not file.exists():
        return pd.DataFrame(columns=[*STUDIES[study], *_TEXT])
    return pd.read_csv(file, dtype=_TEXT)


def keys_of(results: Path, study: str) -> set[tuple]:
    """Values of the columns that name the rows a study has."""
    return set(rows_of(results, study)[STUDIES[study]].itertuples(index=False, name=None))


def add_rows(results: Path, study: str, rows: list[dict]) -> None:
    """Add rows to the file, with version and code; they replace rows of the same names.

    Two processes may add to one file, and the file is never seen half written.
    """
    made = {"user_dgl": __version__, "code": current_code()}
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
def current_code() -> str:
    """Digest of the code of a run of the default."""
    return code_digest("user-dgl", "default", load_config(default_config(), []))


def stale_lines(results: Path) -> list[str]:
    """Say of each study how many of its rows other code than the current one has made."""
    lines = []
    for study in STUDIES:
        rows = rows_of(results, study)
        old = int((rows.get("code", pd.Series(index=rows.index)) != current_code()).sum())
        if old:
            lines.append(f"{study}: of {len(rows)} rows {old} older than the code")
    return lines
