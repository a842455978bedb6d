"""Cells of text: numbers, and what stands in place of a missing one."""

# R, pandas and spreadsheets write a missing number or label in these ways.
MISSING = (
    *("", "nan", "NaN", "NAN", "-nan", "-NaN", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaT"),
    *("null", "NULL", "Null", "None", "\\N"),
)


def is_number(cell: str) -> bool:
    """Whether a cell is a number or stands for a missing number (`MISSING`)."""
    if cell in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() accepts 1_000, but the C parser does not
