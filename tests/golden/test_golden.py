"""Golden cases of the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from ome.testing.golden import check_case

CASES = sorted((Path(__file__).parent / "cases").iterdir())


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_golden_case(case: Path) -> None:
    check_case(case)
    assert (case / "why.txt").read_text().strip()


def test_a_case_that_is_wrong_fails(tmp_path: Path) -> None:
    (tmp_path / "input.yaml").write_text((CASES[0] / "input.yaml").read_text())
    text = (CASES[0] / "expect.yaml").read_text()
    (tmp_path / "expect.yaml").write_text(text.replace("--tp-size=4", "--tp-size=5"))
    with pytest.raises(AssertionError):
        check_case(tmp_path)
