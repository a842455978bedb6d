"""tools/reproduction/study.py: rows of the studies are added, replaced and dated."""

import pandas as pd
from reproduction import study


def row(seed, weights, nmi):
    return {"set": "a", "seed": seed, "weights": weights, "nmi": nmi}


def test_rows_are_added_and_replaced(tmp_path):
    study.add_rows(tmp_path, "weights", [row(0, "auto", 1.0), row(0, "ignore", 2.0)])
    study.add_rows(tmp_path, "weights", [row(1, "auto", 3.0), row(0, "auto", 4.0)])
    rows = study.rows_of(tmp_path, "weights")
    assert rows["nmi"].tolist() == [4.0, 2.0, 3.0]
    assert set(rows["code"]) == {study.current_code("weights")}
    assert study.known_rows(tmp_path, "weights", stale=False) == {
        ("a", 0, "auto"), ("a", 0, "ignore"), ("a", 1, "auto"),
    }  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == ["weights.csv"]


def test_rows_of_other_code_are_told(tmp_path):
    assert study.stale_lines(tmp_path) == []
    pd.DataFrame([row(0, "auto", 1.0)]).to_csv(tmp_path / "weights.csv", index=False)
    study.add_rows(tmp_path, "weights", [row(1, "auto", 1.0)])
    assert study.stale_lines(tmp_path) == ["weights: of 2 rows 1 older than the code"]
    assert len(study.known_rows(tmp_path, "weights", stale=False)) == 2
    assert study.known_rows(tmp_path, "weights", stale=True) == {("a", 1, "auto")}
