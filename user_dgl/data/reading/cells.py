"""Cells of text: numbers, and what stands in place of a missing one."""

# What programs write in place of a missing number, id or label: R, pandas, Python, SQL,
# spreadsheets.
MISSING = frozenset(
    ("", "NA", "N/A", "#N/A", "<NA>", "nan", "NaN", "NAN", "NaT", "null", "NULL", "None", "\\N")
) | frozenset(("n/a", "#NA", "Null", "-nan", "-NaN"))  # fmt: skip
# In place of a missing class or category. "None" may be the name of one.
MISSING_CLASS = MISSING - {"None"}


def is_number(cell: str) -> bool:
    """Whether a cell is a number or stands for a missing number (`MISSING`)."""
    if cell in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() accepts 1_000, but the C parser does not
