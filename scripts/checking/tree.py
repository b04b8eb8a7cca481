"""The files of the checkout, by their content: all files that git tracks or would track."""
import hashlib
import subprocess
from pathlib import Path

SKIPPED = {"build", ".git", ".cache", "__pycache__"}  # if git is not available


def content_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _names(source: Path) -> list[str]:
    try:
        done = subprocess.run(["git", "-C", source, "ls-files", "-coz", "--exclude-standard"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return sorted(set(done.stdout.split("\0")) - {""})
    except FileNotFoundError:
        pass
    files = (path.relative_to(source) for path in source.rglob("*"))
    return sorted(str(path) for path in files if not SKIPPED & set(path.parts))


def manifest(source: Path) -> dict[str, str]:
    """Path -> hash of mode and content, of every file of the checkout."""
    found = {}
    for name in _names(source):
        path = source / name
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            executable = "x" if path.stat().st_mode & 0o100 else ""
            found[name] = content_hash(path)[:24] + executable
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys()
                  if before.get(name) != after.get(name))


def commit(source: Path) -> str:
    """A readable name of the checkout: a short hash, with a plus if files differ from it."""
    try:
        git = ["git", "-C", str(source)]
        head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True,
                              text=True)
        if head.returncode == 0:
            status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
            return head.stdout.strip() + ("+" if status.stdout.strip() else "")
    except FileNotFoundError:
        pass
    return "no commit"
