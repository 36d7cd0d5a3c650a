"""The tree as the rules see it: every file of the repository with its text, read once."""
import collections
import os
import re
import subprocess

Finding = collections.namedtuple("Finding", "path line message")

CPP = (".cpp", ".hpp", ".h", ".S")
# Programs in other languages that are measured beside ours; their own habits apply to them.
FOREIGN = ("bench/peers/",)


class Source:
    """One file: its path from the root, its text, and for C++ the text without its comments."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.splitlines()
        self._code = None

    @property
    def is_cpp(self):
        return self.path.endswith(CPP) and not self.path.startswith(FOREIGN)

    @property
    def is_header(self):
        return self.path.endswith((".hpp", ".h"))

    @property
    def is_test(self):
        return self.path.startswith("tests/") or self.role in ("test", "model", "fuzz", "fixture")

    @property
    def role(self):
        """The role that the suffix names: test, model, bench, fuzz, fixture, or "" for a plain file."""
        match = re.search(r"_(test|model|bench|fuzz)\.cpp$|_(fixture|test)\.hpp$", self.path)
        return (match[1] or match[2]) if match else ""

    @property
    def layer(self):
        """The folder that decides what the file may include: base, sched, ..., apps, tests."""
        parts = self.path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            return parts[1]
        return parts[0] if len(parts) > 1 else ""

    @property
    def code(self):
        """The lines with comments and the insides of literals blanked; line numbers still fit."""
        if self._code is None:
            self._code = strip(self.text).split("\n")
        return self._code


class Tree:
    """All files, by path. `files` maps path to text."""

    def __init__(self, files):
        self.sources = {path: Source(path, text) for path, text in sorted(files.items())}

    @classmethod
    def of_repository(cls, root):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, check=False)
        if listed.returncode == 0:
            names = [n for n in listed.stdout.decode().split("\0") if n]
        else:  # an unpacked archive
            names = []
            for folder, folders, found in os.walk(root):
                folders[:] = [f for f in folders if f not in ("build", ".git", ".cache")]
                names += [os.path.relpath(os.path.join(folder, name), root) for name in found]
        files = {}
        for name in names:
            path = root / name
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                if b"\0" not in data:
                    files[name] = data.decode("utf-8", "replace")
        return cls(files)

    def __iter__(self):
        return iter(self.sources.values())

    def __contains__(self, path):
        return path in self.sources

    def cpp(self):
        return [source for source in self if source.is_cpp]


_TOKEN = re.compile(
    r'R"(?P<tag>[^()\\ ]*)\((?s:.*?)\)(?P=tag)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'"
    r"|//[^\n]*|/\*(?s:.*?)\*/")


def strip(text):
    """Blanks comments and the insides of string and character literals; keeps every newline."""
    def blank(match):
        found = match[0]
        newlines = "\n" * found.count("\n")
        if found.startswith(("//", "/*")):
            return " " + newlines
        return '""' + newlines if found.endswith('"') else "' '" + newlines
    return _TOKEN.sub(blank, text)
