"""Who includes whom. The layers of src/ are a stack; a file looks down it and never up or aside."""
import posixpath
import re

from .source import Finding

# Layers on one line are neighbours: they do not know each other.
LAYERS = [
    ["base"],
    ["fiber"],
    ["sched"],
    ["sync", "io", "observe"],
    ["actor"],
    ["testing"],
]
RANK = {layer: rank for rank, layers in enumerate(LAYERS) for layer in layers}
USERS = ("apps", "examples", "bench")

# A library of somebody else's is named in one place, so that it can be replaced in one place.
LIBRARIES = {
    r"gtest/|gmock/": ("tests only", lambda s: s.is_test),
    r"boost/": ("benchmarks only", lambda s: s.role == "bench" or s.layer == "bench"),
    r"liburing": ("src/io/uring_driver.* only", lambda s: s.path.startswith("src/io/uring_driver")),
    r"openssl/": ("src/io/tls.* only", lambda s: s.path.startswith("src/io/tls")),
    r"valgrind/": ("src/fiber only", lambda s: s.layer == "fiber"),
}


def includes(source):
    """Yields (line number, what is included, whether in angle brackets)."""
    for number, line in enumerate(source.lines, 1):
        match = re.match(r'\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', line)
        if match:
            yield number, match[1] or match[2], bool(match[1])


def resolve(source, name, tree):
    """The path in the tree that an include names, or None for one from outside."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), name))
    for path in (beside, "src/" + name, "include/" + name, "model/include/" + name, name):
        if path in tree:
            return path
    return None


def edges(tree):
    """Yields (source, line, included source) for each include that stays in the tree."""
    for source in tree.cpp():
        for number, name, _ in includes(source):
            target = resolve(source, name, tree)
            if target:
                yield source, number, tree.sources[target]


def upward_include(tree):
    """A layer of src includes itself, lower layers and the public headers; never a higher layer."""
    for source, line, target in edges(tree):
        if source.layer not in RANK or source.layer == target.layer:
            continue
        if target.path.startswith(("tests/support/", "tests/model/")) and source.is_test:
            continue
        if target.path.startswith("model/") and source.role == "model":
            continue
        if target.layer == "include":
            continue
        if target.layer not in RANK:
            yield Finding(source.path, line, f"{source.layer} is below {target.layer}: what it needs "
                          f"of {target.path} is an interface that {target.layer} registers")
        elif RANK[target.layer] > RANK[source.layer]:
            yield Finding(source.path, line, f"{source.layer} may not look up at {target.layer}: "
                          "what it needs is an interface that the higher layer registers downward")


def sideways_include(tree):
    """sync, io and observe do not know each other."""
    for source, line, target in edges(tree):
        both = source.layer in RANK and target.layer in RANK and source.layer != target.layer
        if both and RANK[source.layer] == RANK[target.layer]:
            yield Finding(source.path, line, f"{source.layer} and {target.layer} are neighbours: move "
                          "what they share down to sched or base")


def private_header(tree):
    """Apps, examples and benchmarks include public headers only, and nothing of smarm/detail.

    An app may also stand on base: it is no user's program but part of this house, and has its asserts
    and atomics from the same place.
    """
    for source, line, target in edges(tree):
        if source.layer not in USERS or source.layer == "apps" and target.layer == "base":
            continue
        if target.layer in RANK or target.layer == "tests" and not source.is_test:
            yield Finding(source.path, line, f"{target.path} is private: use what include/smarm offers")
        elif target.path.startswith("include/smarm/detail/"):
            yield Finding(source.path, line, f"{target.path} is a detail of the public headers: "
                          "include the header that stands on it")


def public_header_std_only(tree):
    """A public header includes the standard library and other public headers, nothing else."""
    for source in tree.cpp():
        if source.layer != "include":
            continue
        for line, name, angled in includes(source):
            inside = resolve(source, name, tree)
            if inside and inside.startswith("include/"):
                continue
            if inside or not angled or not re.fullmatch(r"[a-z_]+", name):
                yield Finding(source.path, line, f"{name} is not of the standard library: declare what "
                              "is needed and include it in the source file")


def foreign_library(tree):
    """A library of somebody else's is named in one place."""
    for source in tree.cpp():
        for line, name, _ in includes(source):
            for pattern, (where, allowed) in LIBRARIES.items():
                if re.match(pattern, name) and not allowed(source):
                    yield Finding(source.path, line, f"{name}: {where}")


def declared_dependencies(tree):
    """A layer's CMakeLists.txt names each layer that its files include."""
    declared = {}
    for source in tree:
        if re.fullmatch(r"src/\w+/CMakeLists\.txt", source.path):
            match = re.search(r"smarm_layer\(\s*(\w+)([^)]*)\)", source.text)
            if match:
                words = match[2].split()
                if "LIBRARIES" in words:
                    words = words[:words.index("LIBRARIES")]
                declared[match[1]] = set(words) - {"DEPS"}

    def reaches(layer, seen=()):
        found = set(declared.get(layer, ()))
        for dep in list(found):
            if dep not in seen:
                found |= reaches(dep, (*seen, layer))
        return found

    for source, line, target in edges(tree):
        if source.layer in declared and target.layer in RANK and target.layer != source.layer:
            if target.layer not in reaches(source.layer):
                yield Finding(source.path, line, f"src/{source.layer}/CMakeLists.txt does not name "
                              f"{target.layer} among its DEPS")


def include_cycle(tree):
    """No header includes itself by way of others."""
    graph = {}
    for source, _, target in edges(tree):
        graph.setdefault(source.path, []).append(target.path)
    state = {}

    def visit(path, trail):
        state[path] = "open"
        for target in graph.get(path, ()):
            if state.get(target) == "open" and target != path:
                yield Finding(path, 1, "cycle: " + " > ".join([*trail[trail.index(target):], target]))
            elif target not in state:
                yield from visit(target, [*trail, target])
        state[path] = "done"

    for path in graph:
        if path not in state:
            yield from visit(path, [path])


def in_some_target(tree):
    """Each source belongs to a CMake target and each header is included by somebody."""
    included = {target.path for source, _, target in edges(tree) if source.path != target.path}
    for source in tree.cpp():
        if source.is_header:
            if source.layer != "include" and source.path not in included and not is_seam(source, tree):
                yield Finding(source.path, 1, "no file includes this header: use it or remove it")
            continue
        # The models of all layers are one program.
        is_model = source.role == "model" and source.path.startswith("src/")
        folder = "tests/model" if is_model else posixpath.dirname(source.path)
        while folder and folder + "/CMakeLists.txt" not in tree:
            folder = posixpath.dirname(folder)
        script = tree.sources.get(folder + "/CMakeLists.txt")
        if not (script and built_by(script, posixpath.relpath(source.path, folder), source)):
            yield Finding(source.path, 1, "no CMake target builds this file")


def is_seam(source, tree):
    """Whether a build puts the header in another's place, by its path in quotes."""
    return any(f'"{source.path}' in script.text.replace("\\", "")
               for script in tree if script.path.endswith("CMakeLists.txt"))


def built_by(script, name, source):
    """Whether the CMakeLists.txt builds the file: by name, by a glob, or as part of a layer."""
    if re.search(r"\bsmarm_layer\(", script.text):
        return "/" not in name and source.role != "model"
    if source.role == "model" and source.path.startswith("src/"):
        return "src/*/*_model.cpp" in script.text
    if re.search(r"(?<![\w./-])" + re.escape(name) + r"(?![\w.])", script.text):
        return True
    if source.path.endswith(".cpp") and re.search(
            r"(?<![\w./-])" + re.escape(name[:-len(".cpp")]) + r"(?![\w.])", script.text):
        return True  # named without its suffix, in a loop over programs
    for glob in re.findall(r"[\w./*${}-]*\*[\w./*-]*", script.text):
        pattern = re.escape(glob.split("}/")[-1]).replace(r"\*", "[^/]*")
        if re.fullmatch(pattern, name):
            return True
        if "GLOB_RECURSE" in script.text and re.fullmatch(pattern, posixpath.basename(name)):
            return True
    return False


RULES = [upward_include, sideways_include, private_header, public_header_std_only, foreign_library,
         declared_dependencies, include_cycle, in_some_target]
