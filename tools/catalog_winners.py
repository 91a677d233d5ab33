"""Write (or, with --check, compare) tests/data/catalog-winners.json: the runtime that OME chooses for
every model of the public catalog, out of all its runtimes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ome.sources import load
from ome.testing.catalog import catalog_files, catalog_path, winners

TARGET = Path(__file__).resolve().parents[1] / "tests/data/catalog-winners.json"
NOTE = (
    "Per model of the public catalog: the winner of automatic selection among all its runtimes, or the "
    "refusal. Most models leave out format, framework or size; `filled` names the fields that were taken "
    "from the first entry of the runtime made for the model (`from`), a size being the middle of its "
    "range. Of the four runtime names that stand twice the later file in archive order is kept."
)


def main() -> int:
    """Regenerate or compare; exit code 1 when they differ or there is no catalog."""
    if not catalog_path().exists():
        print(f"no catalog at {catalog_path()}: set OME_CATALOG to its .tar.gz or directory")
        return 1
    data = {"note": NOTE, "models": winners(load(catalog_files(catalog_path())).objects)}
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    if "--check" in sys.argv[1:]:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("up to date" if same else f"{TARGET} differs: run tools/catalog_winners.py")
        return 0 if same else 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
