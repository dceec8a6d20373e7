"""The shape of the house: who may import whom, and how big a room may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "underdog"
FILES = sorted(SOURCE.rglob("*.py"))

# What may be larger than the rule says, with its reason.
EXCEPTIONS: dict[str, str] = {}


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_imports_keep_to_the_layers() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    command = [str(lint), "--no-cache"]
    root = SOURCE.parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_import_cycles() -> None:
    import grimp

    graph = grimp.build_graph("underdog")
    edges = {m: set(graph.find_modules_directly_imported_by(m)) for m in graph.modules}
    # imports inside functions are for use, not for load: grimp sees both, so drop those
    for module, targets in edges.items():
        edges[module] = {t for t in targets if imported_at_top(module, t)}
    cycle = find_cycle(edges)
    assert cycle is None, " -> ".join(cycle or [])


def imported_at_top(module: str, target: str) -> bool:
    path = SOURCE.parent / (module.replace(".", "/") + ".py")
    if not path.exists():
        path = SOURCE.parent / module.replace(".", "/") / "__init__.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            full = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if target in full:
                return True
        if isinstance(node, ast.Import) and target in {alias.name for alias in node.names}:
            return True
    return False


def find_cycle(edges: dict[str, set[str]]) -> list[str] | None:
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str] | None:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return None
        for target in sorted(edges.get(node, ())):
            found = visit(target, [*path, node])
            if found:
                return found
        done.add(node)
        return None

    for module in sorted(edges):
        found = visit(module, [])
        if found:
            return found
    return None


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_sizes(path: Path) -> None:
    if relative(path) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[relative(path)])
    assert len(path.read_text().splitlines()) <= 400, "a file over 400 lines"
    for function in functions(path):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= 50, f"{function.name} has {lines} lines"
        positional = [a.arg for a in function.args.posonlyargs + function.args.args]
        count = len([name for name in positional if name not in {"self", "cls"}])
        if not has_decorator(function, "option", "argument"):  # click fills those by name
            assert count <= 6, f"{function.name} takes {count} positional arguments"


def has_decorator(function: ast.FunctionDef | ast.AsyncFunctionDef, *names: str) -> bool:
    texts = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name in text for text in texts for name in names)


def test_protocols_have_five_methods_or_fewer() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and "Protocol" in {
                ast.unparse(b) for b in node.bases
            }:
                methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
                public = [m for m in methods if not m.name.startswith("__")]
                assert len(public) <= 5, f"{relative(path)}: {node.name}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [relative(p) for p in FILES if not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []
