"""The package as somebody installs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "python/amends-pydantic-ai"


def test_a_wheel_has_the_types_and_the_licence(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"amends_pydantic_ai/py.typed", "amends_pydantic_ai/_registry.py"} <= set(names)
    assert any(name.endswith("LICENSE") for name in names)
