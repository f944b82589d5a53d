"""Lists the packages: setuptools finds them only where folder and import name are the same."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

packages = []
for package, folder in FOLDERS.items():
    packages.append(package)
    packages += [f"{package}.{name}" for name in find_packages(str(ROOT / folder))]

setup(packages=packages)
