"""Checks a build folder against config/packages.txt: every header that a compilation read and every library that a
binary needs must belong to a listed Debian package, to a dependency of one, or to the base system."""
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def output(*command, stdin=None):
    return subprocess.run(command, input=stdin, capture_output=True, text=True).stdout


def headers_read(build):
    """Absolute paths outside the source tree in ninja's dependency log, but for objects of GPU toolkits."""
    found = set()
    toolkit = False
    for line in output("ninja", "-C", build, "-t", "deps").split("\n"):
        if line and not line.startswith(" "):
            toolkit = re.match(r"plugins/gpu/.*_(cuda|rocm)", line) is not None
        elif line.startswith("    ") and not toolkit:
            path = os.path.normpath(os.path.join(build, line.strip()))
            if not path.startswith((SOURCE + "/", build + "/")):
                found.add(os.path.realpath(path))
    return found


def libraries_needed(build):
    known = dict(re.findall(r"\t(\S+) \(.*x86-64.*\) => (\S+)", output("/sbin/ldconfig", "-p")))
    found = set()
    plugins = ("plugins", "compiler_llvm", "grpc", "kernels_image", "kernels_openblas", "remote")
    for folder in ("bin", "tests", "lib", *(f"lib/weir/{plugin}" for plugin in plugins)):
        top = os.path.join(build, folder)
        for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
            path = os.path.join(top, name)
            if os.path.isfile(path) and not name.endswith(".a"):
                for library in re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", path)):
                    if library in known:
                        found.add(os.path.realpath(known[library]))
    return found


def installed_packages():
    """name -> (names it depends on, priority, names it provides), for every installed package."""
    form = "${Package}\t${Pre-Depends}, ${Depends}\t${Priority}\t${Provides}\n"
    packages = {}
    for line in output("dpkg-query", "-W", "-f", form).split("\n"):
        if line:
            name, depends, priority, provides = line.split("\t")
            names = [re.sub(r"[:(\s].*", "", d.strip()) for d in re.split(r"[,|]", depends)]
            packages[name] = ([n for n in names if n], priority, re.findall(r"[\w.+-]+", provides))
    return packages


def closure(roots, packages):
    providers = {}
    for name, (_, _, provides) in packages.items():
        for provided in provides:
            providers.setdefault(provided, []).append(name)
    seen, stack = set(), list(roots)
    while stack:
        name = stack.pop()
        for real in [name] if name in packages else providers.get(name, []):
            if real not in seen:
                seen.add(real)
                stack.extend(packages[real][0])
    return seen


def owners(paths):
    """path -> package; dpkg may record a path with or without its /usr."""
    spellings = {}
    for path in paths:
        spellings[path] = path
        spellings[path[4:] if path.startswith("/usr/lib") else "/usr" + path] = path
    owner = {}
    for line in output("dpkg-query", "-S", *sorted(spellings)).split("\n"):
        match = re.match(r"(.+?): (/.*)$", line)
        if match and match.group(2) in spellings:
            owner[spellings[match.group(2)]] = match.group(1).split(",")[0].split(":")[0]
    return owner


def main():
    build = os.path.abspath(sys.argv[1])
    packages = installed_packages()
    roots = [name for name, (_, priority, _) in packages.items() if priority == "required"]
    for line in open(os.path.join(SOURCE, "config", "packages.txt"), encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            roots += line.split()[0].split("|")
    allowed = closure(roots, packages)
    paths = headers_read(build) | libraries_needed(build)
    owner = owners(paths)
    outside = {}
    for path in sorted(paths):
        name = owner.get(path)
        if name not in allowed:
            outside.setdefault(name or "no package", []).append(path)
    for name, files in outside.items():
        print(f"{name} is not in config/packages.txt, but the build used {files[0]}"
              + (f" and {len(files) - 1} more" if len(files) > 1 else ""))
    print(f"packages: {len(paths)} files of {len(set(owner.values()))} packages, {len(outside)} findings")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
