"""Imports flow one way, heavy modules load late, and a user's own module names never collide."""

import ast
import functools
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"minitorch": "minitorch", "trainer": "minitorch.trainer"}
FOLDERS |= {"callbacks": "minitorch.callbacks", "loggers": "minitorch.loggers"}
FILES = sorted(
    path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
)
HEAVY = (
    "cupy",
    "numba",
    "llvmlite",
    "tensorboardX",
    "tensorboard",
    "tqdm",
    "sklearn",
    "matplotlib",
)
HEAVY += ("rich", "psutil", "wandb", "mlflow")

# What each folder may import at run time besides the standard library and itself.
MAY_IMPORT = {
    "minitorch": {
        "numpy",
        "ml_dtypes",
        "safetensors",
        "threadpoolctl",
        "numba",
        "llvmlite",
        "cupy",
        "sklearn",
        "PIL",
        "tensorboardX",  # utils.tensorboard: PyTorch's path for a writer without a Trainer
    },
    "trainer": {
        "numpy",
        "minitorch",
        "callbacks",
        "loggers",
        "yaml",  # hparams_file
        "jsonargparse",  # the command line
        "matplotlib",  # the plot of the learning rate finder
    },
    "callbacks": {"numpy", "minitorch", "tqdm", "rich", "psutil"},
    "loggers": {"numpy", "tensorboardX", "wandb", "mlflow"},
}
# Whole folders that stand for one client: cupy is imported nowhere else.
ONLY_IN = {
    "cupy": "minitorch/backend",
    "numba": "minitorch/kernels",
    "llvmlite": "minitorch/kernels",
}
# These are themselves imported late, so they may import the heavy client at their top.
LATE = ("minitorch/backend/cupy_backend.py", "minitorch/kernels/")
LATE += ("loggers/events.py", "loggers/summary_writer.py", "callbacks/rich_display.py")
# Operators are ops, and ops make tensors.
ALLOWED_CYCLE = ("minitorch.tensor", "minitorch.ops")


def module_name(path: Path) -> str:
    """The import name of a file of the four folders."""
    parts = [FOLDERS[path.parts[0]], *path.with_suffix("").parts[1:]]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def runtime_nodes(tree: ast.AST, *, inside_functions: bool) -> Iterator[ast.AST]:
    """Walks what runs: not `if TYPE_CHECKING`, and function bodies only on request."""
    for node in ast.iter_child_nodes(tree):
        if is_typing_only(node):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not inside_functions:
            continue
        yield node
        yield from runtime_nodes(node, inside_functions=inside_functions)


@functools.cache
def imports(path: Path, *, inside_functions: bool = True) -> set[str]:
    """Absolute names that a file imports; `from a import b` counts as `a.b`."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in runtime_nodes(
        ast.parse((ROOT / path).read_text()), inside_functions=inside_functions
    ):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return found


def owner(name: str) -> str:
    """The folder that an imported name belongs to, or its top-level package."""
    for folder in ("trainer", "callbacks", "loggers"):
        if name == FOLDERS[folder] or name.startswith(FOLDERS[folder] + "."):
            return folder
    return name.split(".")[0]


def offenders(files: Iterable[Path], judge: Callable[[Path], set[str]]) -> str:
    """One line for each file with names that the judge objects to."""
    return "\n".join(f"{path}: {', '.join(sorted(bad))}" for path in files if (bad := judge(path)))


def test_imports_flow_one_way() -> None:
    def foreign(path: Path) -> set[str]:
        allowed = {*MAY_IMPORT[path.parts[0]], path.parts[0], *sys.stdlib_module_names}
        return {name for name in imports(path) if owner(name) not in allowed}

    assert not offenders(FILES, foreign)


@pytest.mark.parametrize(("client", "place"), ONLY_IN.items())
def test_client_is_imported_in_one_place(client: str, place: str) -> None:
    elsewhere = [path for path in FILES if not path.as_posix().startswith(place)]
    assert not offenders(elsewhere, lambda path: {n for n in imports(path) if owner(n) == client})


def test_heavy_modules_are_imported_inside_functions() -> None:
    def heavy(path: Path) -> set[str]:
        return {name for name in imports(path, inside_functions=False) if owner(name) in HEAVY}

    assert not offenders([p for p in FILES if not p.as_posix().startswith(LATE)], heavy)


def core_graph() -> dict[str, set[str]]:
    """For each module of the core: the modules that it imports when it loads."""
    core = {module_name(path): path for path in FILES if path.parts[0] == "minitorch"}
    core.pop("minitorch")
    graph = {}
    for module, path in core.items():
        names = imports(path, inside_functions=False)
        found = {name if name in core else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in found if name in core} - {module}
    return graph


def test_the_core_has_no_import_cycle_but_tensor_and_ops() -> None:
    graph = core_graph()
    in_cycle = {name for name in graph if name.startswith(ALLOWED_CYCLE)}
    for module in in_cycle:
        graph[module] -= in_cycle
    while leaves := {module for module, inner in graph.items() if not inner}:
        graph = {module: inner - leaves for module, inner in graph.items() if module not in leaves}
    assert not graph, f"these import each other when they load: {graph}"


def test_no_bare_import_of_a_mapped_folder() -> None:
    def bare(path: Path) -> set[str]:
        return {
            name for name in imports(path) if name.split(".")[0] in FOLDERS.keys() - {"minitorch"}
        }

    assert not offenders(FILES, bare), "write minitorch.trainer: a bare import makes a second class"


def run(code: str, cwd: Path) -> str:
    result = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("minitorch", (*HEAVY, "minitorch.trainer", "minitorch.callbacks", "minitorch.loggers")),
        ("minitorch.trainer", HEAVY),
        ("minitorch.callbacks", HEAVY),
        ("minitorch.loggers", HEAVY),
    ],
)
def test_importing_loads_nothing_heavy(
    module: str, absent: tuple[str, ...], tmp_path: Path
) -> None:
    loaded = run(f"import {module}, sys; print(*sys.modules, sep='\\n')", tmp_path).split()
    assert module in loaded
    assert not set(absent) & set(loaded)


def test_a_users_own_modules_do_not_disturb_ours(tmp_path: Path) -> None:
    for name in ("trainer", "callbacks", "loggers", "tests", "data", "nn", "optim"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module was imported')")
    run("import minitorch.trainer, minitorch.callbacks, minitorch.loggers", tmp_path)


@pytest.mark.parametrize("name", ["trainer", "callbacks", "nn"])
def test_a_folder_that_hides_the_package_is_named(name: str, tmp_path: Path) -> None:
    hidden = f"""
import importlib.util, sys
found = importlib.util.find_spec("minitorch")  # as a folder beside the script would be found
sys.modules["minitorch"] = module = type(sys)("minitorch")
module.__path__ = list(found.submodule_search_locations)
try:
    import minitorch.{name}
except ImportError as error:
    print(error)
"""
    told = run(hidden, tmp_path)
    assert told.startswith("minitorch: a folder of that name hides the package. Python found ")
    assert "Rename that folder" in told


def test_a_folder_does_not_hide_what_lies_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "minitorch").mkdir()
    assert 'pwd >"$(' in (ROOT / "scripts" / "env").read_text()  # puts the clone on the path
    code = f"import sys; sys.path.append({str(ROOT)!r})\n"
    run(f"{code}from minitorch import Tensor, trainer, callbacks", tmp_path)
