"""What the prose of the tree may say, and that what it points at is there."""
import posixpath
import re

from .source import Finding


def slug(heading):
    """The anchor that a heading gets: lower case, no punctuation, blanks as hyphens."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def prose_lines(source):
    """Yields (number, line) outside of fenced code."""
    fenced = False
    for number, line in enumerate(source.lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(source):
    return {slug(line.lstrip("#")) for _, line in prose_lines(source) if line.startswith("#")}


def dead_link(tree):
    """A link in a document leads to a file, and to a heading, that is there."""
    folders = {posixpath.dirname(path) for path in tree.sources}
    folders |= {folder.rsplit("/", n)[0] for folder in set(folders) for n in range(folder.count("/") + 1)}
    for source in tree:
        if not source.path.endswith(".md"):
            continue
        for number, line in prose_lines(source):
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                full = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), path)) \
                    if path else source.path
                if full not in tree and full not in folders:
                    yield Finding(source.path, number, f"{target} leads nowhere")
                elif anchor and full.endswith(".md") and anchor not in anchors(tree.sources[full]):
                    yield Finding(source.path, number, f"{full} has no heading for #{anchor}")


def dead_mention(tree):
    """A document that a comment or text names is there."""
    names = {posixpath.basename(path) for path in tree.sources}
    for source in tree:
        if source.path.startswith(("tools/style", "bench/peers/")):
            continue
        for number, line in enumerate(source.lines, 1):
            for match in re.finditer(r"(?<![\w/.:-])((?:docs/)[\w./-]+\.md|[A-Z]{4,}\.md)\b", line):
                if match[1] not in tree and match[1] not in names:
                    yield Finding(source.path, number, f"{match[1]} is not in the tree")


def one_title(tree):
    """A document has exactly one title."""
    for source in tree:
        if source.path.endswith(".md"):
            titles = [n for n, line in prose_lines(source) if line.startswith("# ")]
            if len(titles) != 1:
                yield Finding(source.path, titles[1] if titles else 1, f"{len(titles)} titles")


FORBIDDEN = [
    # Where somebody happened to work is nobody's business and true nowhere else.
    (r"(?<![\w.$}*])/(work|home|Users)/\w", "an absolute path of one machine"),
    # A number in somebody's list of tasks tells a reader nothing; a bug of another project, written
    # project#number, does.
    (r"(?i)(?<![\w#])issues? #?\d+\b", "a task's number: say the reason itself"),
    (r"(?i)\bthe (brief|seeds?) (says?|asks?|wants?|names?)\b", "say the requirement itself"),
]


def forbidden_words(tree):
    """The project speaks of itself: no machine's paths, no task numbers."""
    for source in tree:
        if source.path.startswith("tools/style"):
            continue
        for number, line in enumerate(source.lines, 1):
            for pattern, why in FORBIDDEN:
                match = re.search(pattern, line)
                if match:
                    yield Finding(source.path, number, f"{match[0].strip()}: {why}")


RULES = [dead_link, dead_mention, one_title, forbidden_words]
