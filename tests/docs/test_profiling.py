"""The programs in docs/profiling.md run, one after another, and write what the page says."""

import pathlib
import re

import lamella.alias  # noqa: F401

PAGE = pathlib.Path(__file__).parents[2] / "docs/profiling.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {"__name__": "__main__"})
    for folder in ("profile", "steps"):
        assert (tmp_path / folder / "timeline.json").stat().st_size > 0
    written = {path.stem for path in (tmp_path / "profile").iterdir()}
    assert written == {"timeline", "summary", "operators", "layers", "lines", "memory",
                       "memory_peak"}  # fmt: skip
    assert "held by:" in capsys.readouterr().out
