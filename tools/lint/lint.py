"""The text checks of tools/lint/run: folder layers and cycles, file and function sizes, own header first, include
guards, allowed names at top level, forbidden words, the list of features. `--report` adds figures that are not
enforced."""
import fnmatch
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

import features

FILE_CAP = 600
FUNCTION_CAP = 80
LINE_CAP = 120
CODE = (".cc", ".h", ".c", ".py", ".sh", ".cmake", ".txt")
CXX = (".cc", ".h", ".c")
TOP_LEVEL = """CMakeLists.txt CMakePresets.json core plugins sdk config tests tools README.md LICENSE CHANGELOG.md
    ARCHITECTURE.md DECISIONS.md CONTRIBUTING.md .clang-format .clang-tidy .gitignore .gitattributes .ci""".split()
# Words are split here so that this file does not match itself.
WORDS = [
    (r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b", "unfinished work"),
    (r"(?i)\bfor " r"now\b|\bdum" r"my\b|\bstub(s|bed)?\b|\bnot (yet )?implemented" r" here\b", "unfinished work"),
    (r"DIS" r"ABLED_\w|EXPECT_TRUE\(tr" r"ue\)|assert\(tr" r"ue\)", "a test that cannot fail"),
    (r"/wo" r"rk/|/ro" r"ot/|/home/\w+/|/tmp/br" r"ief", "a path of one machine"),
    (r"ranges::(unique|remove|remove_if|rotate|partition|stable_part" r"ition|equal_range|subrange)\b|std::vi" r"ews::",
     "ranges that clang 14 cannot compile with this library, as the fuzz targets need; use the form with iterators"),
    (r"py" r"pi\.org|deb\.deb" r"ian\.org|npm" r"js\.", "a package registry's host"),
]
BAD_NAMES = re.compile(r"(?i)(utils?|helpers?|common|manager|impl2)$")
# SessionManager is a name of TensorFlow that its users know.
BAD_TYPES = re.compile(
    r"\b(?:class|struct)\s+(?:\w+\s+)*?((?!SessionManager\b)\w*(?:Utils?|Helpers?|Common|Manager|Impl2))\b")


class Lint:
    def __init__(self):
        self.findings = []
        self.exceptions = []
        for line in open("tools/lint/exceptions.txt", encoding="utf-8"):
            if line.strip() and not line.startswith("#"):
                check, path, what, reason = line.split(None, 3)
                self.exceptions.append((check, path, what, reason))

    def find(self, check, path, what, text, line=0):
        for known, pattern, name, _ in self.exceptions:
            if known == check and fnmatch.fnmatch(path, pattern) and fnmatch.fnmatch(what, name):
                return
        self.findings.append(f"{path}:{line}: [{check}] {text}" if line else f"{path}: [{check}] {text}")


class Layers:
    """config/layers.txt."""

    def __init__(self, path):
        self.rank, self.deny, self.users = {}, {}, {}
        for line in open(path, encoding="utf-8"):
            line = line.split("#")[0].strip()
            if line.startswith("rank "):
                _, rank, *folders = line.split()
                self.rank.update({folder: int(rank) for folder in folders})
            elif line.startswith("deny "):
                folder, rest = line[5:].split(":")
                names, _, allowed = rest.partition(" except ")
                self.deny[folder] = (names.split(), allowed.split())
            elif ":" in line:
                name, folders = line.split(":")
                self.users[name] = folders.split()


def list_files():
    """Files that git tracks or would track, with their text (None for binary files)."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    files = {}
    for name in sorted(set(names.stdout.split("\n"))):
        if name and os.path.isfile(name):
            try:
                files[name] = open(name, encoding="utf-8").read()
            except UnicodeDecodeError:
                files[name] = None
    return files


def folder_of(path):
    """("core", "graph"), ("plugins", "cpu"), ("sdk", "abi") …"""
    parts = path.split("/")
    return (parts[0], parts[1]) if len(parts) > 2 else (parts[0], "")


def includes_of(text):
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1), match.group(2)


def check_include(lint, layers, path, number, header):
    top, folder = folder_of(path)
    to_top, to_folder = folder_of(header)

    def wrong(text):
        lint.find("layer", path, header, f"includes {header}: {text}", number)

    if re.match(r"(google/protobuf|weir/proto)/", header):
        if top == "core" and (folder not in layers.users["protobuf-users"] or path.endswith(".h")):
            wrong("Protocol Buffers only in sources of " + " ".join(layers.users["protobuf-users"]))
        if top in ("plugins", "sdk"):
            wrong("no Protocol Buffers in plugins and SDK")
    if header.startswith("boost/") and top in ("core", "sdk"):
        if top == "sdk" or folder not in layers.users["boost-users"]:
            wrong("Boost only in core's " + " ".join(layers.users["boost-users"]))
    if to_top not in ("core", "plugins", "sdk", "tools", "tests", "config"):
        return
    if top == "sdk":
        if to_top != "sdk" or (folder == "abi" and to_folder != "abi"):
            wrong("the SDK includes nothing of ours, sdk/abi only itself")
    elif top == "plugins":
        if to_top != "sdk" and (to_top, to_folder) not in ((top, folder), (top, "functors")):
            wrong("a plugin includes the SDK, plugins/functors and itself")
    elif top == "core" and to_top == "core" and folder != to_folder:
        if layers.rank.get(to_folder, 99) >= layers.rank.get(folder, -1):
            wrong(f"rank {layers.rank.get(to_folder)} is not below rank {layers.rank.get(folder)}")
        denied, allowed = layers.deny.get(folder, ([], []))
        if to_folder in denied and header not in allowed:
            wrong(f"{folder} may not know {to_folder}")
    elif top == "core" and to_top == "sdk":
        if to_folder != "abi" or folder not in layers.users["sdk-users"]:
            wrong("of core only " + " ".join(layers.users["sdk-users"]) + " include sdk/abi")
    elif top in ("core", "tools") and to_top in ("plugins", "tools", "tests") and top != to_top:
        wrong(f"{top} never includes {to_top}")


def strongly_connected(edges):
    """Groups of several folders that include each other."""
    reach = {}
    for start in edges:
        seen, stack = set(), [start]
        while stack:
            for target in edges.get(stack.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        reach[start] = seen
    groups = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in reach if a in reach[a]}
    return sorted(groups)


def check_layers(lint, files):
    layers = Layers("config/layers.txt")
    edges, used = {}, {}
    for path, text in files.items():
        if not path.endswith(CXX) or text is None:
            continue
        for number, _, header in includes_of(text):
            check_include(lint, layers, path, number, header)
            source, target = folder_of(path), folder_of(header)
            if header in files and source != target and source[0] != "tests":
                edges.setdefault("/".join(source), set()).add("/".join(target))
                if source[0] == target[0] == "core":
                    used.setdefault(source[1], {}).setdefault(target[1], path)
    for group in strongly_connected(edges):
        lint.find("layer", group[0], "cycle", "folders include each other: " + " ".join(group))
    check_deps(lint, layers, files, used)


def check_deps(lint, layers, files, used):
    """DEPS of weir_library go down in rank and reach every folder that the sources include."""
    deps = {}
    for path, text in files.items():
        match = re.match(r"core/(\w+)/CMakeLists.txt$", path)
        call = match and re.search(r"weir_library\(([^)]*)\)", text)
        if not call:
            continue
        folder = match.group(1)
        if folder not in layers.rank:
            lint.find("layer", path, folder, "folder has no rank in config/layers.txt")
        words = re.split(r"\b(NAME|SRCS|HDRS|DEPS|PRIVATE_LIBS|PROTOS)\b", re.sub(r"#.*", "", call.group(1)))
        deps[folder] = [d for key, value in zip(words[1::2], words[2::2]) if key == "DEPS" for d in value.split()]
        for dep in deps[folder]:
            if layers.rank.get(dep, 99) >= layers.rank.get(folder, -1):
                lint.find("layer", path, dep, f"DEPS {dep} is not of lower rank")
    for folder, targets in used.items():
        seen, stack = set(), [folder]
        while stack:
            for dep in deps.get(stack.pop(), ()):
                if dep not in seen:
                    seen.add(dep)
                    stack.append(dep)
        for target, path in targets.items():
            if folder in deps and target not in seen:
                lint.find("layer", path, target, f"core/{target} is included but not among the DEPS of core/{folder}")


def check_sizes(lint, files):
    for path, text in files.items():
        if text is None or not (path.endswith(CODE) or text.startswith("#!")):
            continue
        lines = text.count("\n")
        if lines > FILE_CAP:
            lint.find("file-cap", path, "*", f"{lines} lines, at most {FILE_CAP}")
        if not path.endswith(CXX + (".py", ".cmake")) and not text.startswith("#!"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > LINE_CAP:
                lint.find("line", path, "length", f"{len(line)} columns, at most {LINE_CAP}", number)
            if line != line.rstrip() or "\t" in line:
                lint.find("line", path, "space", "tab or space at the end of the line", number)
        if text and not text.endswith("\n"):
            lint.find("line", path, "end", "no newline at the end of the file")


def functions_of(files):
    """(path, name, first line, number of lines) of every C++ function, from universal-ctags; empty without it."""
    sources = [f for f in files if f.endswith(CXX)]
    if not sources or not shutil.which("ctags"):
        return
    out = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--languages=C,C++", "--kinds-C++=f",
                          "--kinds-C=f", "--langmap=C++:+.h", "-L", "-", "-f", "-"], input="\n".join(sources),
                         capture_output=True, text=True)
    for line in out.stdout.split("\n"):
        if line.startswith("{"):
            tag = json.loads(line)
            if "end" in tag:
                yield tag["path"], tag["name"], tag["line"], tag["end"] - tag["line"] + 1


def check_functions(lint, files):
    lengths = []
    for path, name, line, length in functions_of(files):
        lengths.append(length)
        if length > FUNCTION_CAP:
            lint.find("function-cap", path, name, f"function {name} has {length} lines, at most {FUNCTION_CAP}", line)
    return lengths


def check_examples(lint, path, text):
    """Code in the comments of public headers must be between ```cpp and ```, so that tests/install compiles it and bad
    formatting shows."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.match(r"\s*///?(.*)", line)
        if not comment:
            fenced = False
        elif comment.group(1).strip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r" {3,}\S.*[;{}]$", re.sub(r" +//.*", "", comment.group(1))):
            lint.find("example", path, "*", "code in a comment, wanted between ```cpp and ```", number)


def check_headers(lint, files):
    for path, text in files.items():
        if text is None:
            continue
        if path.startswith(("sdk/", "core/client/")) and path.endswith(".h"):
            check_examples(lint, path, text)
        if path.endswith(".cc") and path[:-3] + ".h" in files:
            first = next(includes_of(text), (0, "", ""))
            # An example is copied out of the tree, so it includes its own headers without their folder.
            own = path[:-3] + ".h"
            if first[2] not in (own, os.path.basename(own) if path.startswith("sdk/examples/") else own):
                lint.find("own-header", path, "*", f"first include is {first[2]}, wanted its own header", first[0])
        if path.endswith(".h"):
            guard = "WEIR_" + re.sub(r"[/.]", "_", path).upper() + "_"
            if f"#ifndef {guard}\n#define {guard}\n" not in text:
                lint.find("guard", path, "*", f"include guard is not {guard}")


PUBLIC_NAME = re.compile(r"(?:class|struct|enum class) (\w+) (?:final )?[{:]|using (?:scope::)?(\w+)(?: =|;)|"
                         r"inline constexpr \w+ (\w+)[{;]|"
                         r"(?! |return|template|friend|requires)[\w:<>,&* ]+ &?([A-Z]\w+)\(")
CLASS = re.compile(r"((?:^///[^\n]*\n)+)(?:^template[^\n]*\n)?^class (\w+)[^;]*?\{\n(.*?)^\};", re.M | re.S)
OPTIONS = re.compile(r"^struct (\w+(?:Options|Args)) \{\n(.*?)^\};", re.M | re.S)
PRIVATE_HEADERS = ("_internal.h", "/control_flow_context.h", "/session_interface.h")


def check_client(lint, files):
    """Every public name is on the API page; constructors of scopes are [[nodiscard]]; members of options have initial
    values, so that designated initializers of some members give no warning."""
    page = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", files.get("core/client/README.md") or ""))))
    for path, text in files.items():
        if not path.startswith("core/client/") or not path.endswith(".h") or path.endswith(PRIVATE_HEADERS):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = PUBLIC_NAME.match(line)
            name = match and next(filter(None, match.groups()))
            if name and not name.endswith(("Options", "Fn")) and name not in page:
                lint.find("client", path, name, f"{name} is not in core/client/README.md", number)
        for doc, name, body in CLASS.findall(text):
            discarded = re.findall(rf"^  (?:explicit )?{name}\((?!const {name}&\)|{name}&&\))", body, re.M)
            if "while it lives" in doc.replace("\n/// ", " ") and discarded:
                lint.find("client", path, name, f"a constructor of the scope {name} is not [[nodiscard]]")
        for name, body in OPTIONS.findall(text):
            for member in re.findall(r"^  [^/\n=]*[\w>] (\w+);", body, re.M):
                lint.find("client", path, f"{name}::{member}", f"{name}::{member} has no initial value")


def check_words(lint, files):
    for path, text in files.items():
        if text is None or path == "tools/lint/exceptions.txt" or path == "LICENSE":
            continue
        stem = os.path.basename(path).split(".")[0]
        if path.endswith(CXX + (".py",)) and BAD_NAMES.search(stem):
            lint.find("word", path, stem, f"the name {stem} says nothing of what is inside")
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, why in WORDS:
                match = not line.startswith("#include") and re.search(pattern, line)
                if match:
                    lint.find("word", path, match.group(0), f"'{match.group(0)}': {why}", number)
            match = path.endswith(CXX) and BAD_TYPES.search(line)
            if match:
                name = match.group(1)
                lint.find("word", path, name, f"the name {name} says nothing of what is inside", number)


OP_NAMES = "tests/unit/ops/traits.txt"
OP_NAMES_CAP = 3


def check_op_names(lint, files):
    """Stages read properties of an op from its record (op::Traits). Only core/op may name the ops that core creates,
    and core/lower those that replace others; host kernels name their ops at registration."""
    ops = set(re.findall(r"^(\w+): ", files.get(OP_NAMES) or "", re.M))
    free = ("core/ops/", "core/op/", "core/client/", "core/builtin/", "core/lower/")
    found = []
    for path, text in files.items():
        if not path.startswith("core/") or path.startswith(free) or not path.endswith(CXX) or text is None:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            named = [name for name in re.findall(r'"(\w+)"', line.split("//")[0]) if name in ops]
            if named:
                found.append((path, number, named[0]))
    if len(found) > OP_NAMES_CAP:
        for path, number, name in found:
            lint.find("op-name", path, name, f"{name} is named: {len(found)} lines in core name ops, at most "
                      f"{OP_NAMES_CAP}; give the op a trait", number)


PUBLIC_HEADERS = "config/public_headers.txt"
# What programs include counts as interface. The aim is 25 headers and 3000 lines; the caps only ever fall.
PUBLIC_HEADERS_CAP = 25
PUBLIC_LINES_CAP = 3000
PRIVATE_FOLDERS = ("core/plugin/", "core/place/", "core/kernel/", "core/device/", "core/runtime/", "core/plan/",
                   "core/execute/")


def headers_from(files, start):
    """The headers of the tree that `start` reaches."""
    reached, open_headers = set(), [start]
    while open_headers:
        header = open_headers.pop()
        if header not in reached and header in files:
            reached.add(header)
            open_headers += [name for _, _, name in includes_of(files[header])]
    return reached


def check_public_headers(lint, files):
    """config/public_headers.txt is what <weir/weir.h> reaches and, below the line "# extra", what only <weir/extra.h>
    reaches, with nothing of the runtime among it. Returns the number of headers of the first part and of their
    lines."""
    text = files.get(PUBLIC_HEADERS) or ""
    reached, extra = headers_from(files, "core/client/weir.h"), headers_from(files, "core/client/extra.h")
    for part, wanted in zip(text.split("# extra\n"), (reached, extra - reached)):
        listed = {line for line in part.split("\n") if line and not line.startswith("#")}
        for header in sorted(wanted - listed):
            lint.find("public", header, "*", f"programs reach it, but {PUBLIC_HEADERS} does not name it there")
        for header in sorted(listed - wanted):
            lint.find("public", PUBLIC_HEADERS, header, f"names {header}, which is not reached so")
    for header in sorted(reached | extra):
        if header.startswith(PRIVATE_FOLDERS + ("sdk/",)) or header.endswith("_internal.h"):
            lint.find("public", header, "*", "a header of the runtime's insides is public")
        if any(name.startswith("fmt/") for _, _, name in includes_of(files[header])):
            lint.find("public", header, "fmt", "programs would need fmt; core/base/errors.h formats errors")
    lines = sum(files[header].count("\n") for header in reached)
    if len(reached) > PUBLIC_HEADERS_CAP:
        lint.find("public", PUBLIC_HEADERS, "count", f"{len(reached)} headers, at most {PUBLIC_HEADERS_CAP}")
    if lines > PUBLIC_LINES_CAP:
        lint.find("public", PUBLIC_HEADERS, "lines", f"{lines} lines, at most {PUBLIC_LINES_CAP}")
    return len(reached), lines


def check_top_level(lint, files):
    for name in sorted({path.split("/")[0] for path in files}):
        if name not in TOP_LEVEL:
            lint.find("top-level", name, "*", "not one of the agreed names at top level")


def check_features(lint, files):
    """tests/features.tsv and the tests whose names bear its numbers name each other."""
    for fault in features.faults_of(files.get(features.LIST) or "", files):
        lint.find("features", features.LIST, "*", fault)


def report(files, lengths):
    headers = {p: t for p, t in files.items() if p.endswith(".h") and t and not p.startswith("tests/")}
    size = {kind: sum(t.count("\n") for p, t in files.items() if t and p.endswith(CXX) and test(p)) for kind, test in
            (("tests", lambda p: p.startswith("tests/")), ("code", lambda p: not p.startswith("tests/")))}
    comment = sum(bool(re.match(r"\s*(//|/\*|\*)", line)) for t in headers.values() for line in t.split("\n"))
    lines = sum(t.count("\n") for t in headers.values())
    print(f"code {size['code']} lines, tests {size['tests']} lines, ratio {size['tests'] / max(size['code'], 1):.2f}")
    print(f"header median {statistics.median(t.count(chr(10)) for t in headers.values()):.0f} lines, "
          f"comment share {100 * comment / max(lines, 1):.0f} %")
    if lengths:
        lengths.sort()
        print(f"functions {len(lengths)}, median {lengths[len(lengths) // 2]}, p90 {lengths[len(lengths) * 9 // 10]}")


def main():
    lint, files = Lint(), list_files()
    check_top_level(lint, files)
    check_layers(lint, files)
    check_sizes(lint, files)
    check_headers(lint, files)
    check_client(lint, files)
    headers, lines = check_public_headers(lint, files)
    check_words(lint, files)
    check_op_names(lint, files)
    check_features(lint, files)
    lengths = check_functions(lint, files)
    for finding in lint.findings:
        print(finding)
    if "--report" in sys.argv:
        report(files, lengths)
    print(f"lint: {len(files)} files, {len(lint.findings)} findings; {headers} public headers of {lines} lines")
    return 1 if lint.findings else 0


if __name__ == "__main__":
    sys.exit(main())
