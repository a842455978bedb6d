"""tools/study_num_clusters.py: its page."""

from reproduction import study
from study_num_clusters import RESULTS, report


def test_the_page_is_that_of_the_file():
    page = (RESULTS / "num-clusters.md").read_text(encoding="utf-8")
    assert page == report(study.rows_of(RESULTS, "num-clusters"))
