"""Tests of an installed weir: install_test.py NAME BUILD_DIR WORK_DIR. The test Tree installs into WORK_DIR/prefix for
the other tests."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command, **options):
    """Output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def want(condition, text):
    if not condition:
        raise AssertionError(text)


def files_below(top):
    return sorted(os.path.relpath(os.path.join(folder, name), top)
                  for folder, _, names in os.walk(top) for name in names)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)


def configure_and_build(source, build, prefix, *options):
    """Builds with the package alone: without variables of weir, and any path into the source tree is an error."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release", *options, env=environment)
    run("ninja", "-C", build, env=environment)
    commands = run("ninja", "-C", build, "-t", "commands")
    want(os.path.join(SOURCE, "core") not in commands and f"-I{SOURCE} " not in commands,
         "the build of the consumer names the source tree:\n" + commands)


def tree(build, prefix, _):
    """Every file is installed in its place, and no public header includes a dependency."""
    fresh(prefix)
    run("cmake", "--install", build, "--prefix", prefix)
    have = files_below(prefix)
    for path in ("bin/weir", "include/weir/weir.h", "include/weir/raw_ops.h", "include/weir/sdk/v1/plugin.h",
                 "include/weir/sdk/abi/plugin.h", "lib/cmake/weir/weirConfig.cmake",
                 "lib/cmake/weir/WeirAddPlugin.cmake", "lib/weir/plugins/cpu.so",
                 "lib/weir/plugins/kernels_eigen.so", "share/weir/README.md", "share/weir/weir.toml",
                 "share/weir/sdk/README.md", "share/weir/sdk/CHANGELOG.md"):
        want(path in have, f"{path} is not installed; there are:\n" + "\n".join(have))
    quickstart_is_enough(build)
    want(not any("async" in path for path in have if path.startswith("lib/")), "kernels for an example are installed")
    for path in have:
        if path.endswith(".h"):
            for header in re.findall(r"^#include <([^>]+)>", open(os.path.join(prefix, path)).read(), re.M):
                private = re.match(r"(google|boost|Eigen|snappy|nlohmann|CLI|spdlog)", header)
                want(not private, f"{path} includes <{header}>, a private dependency")
            want("_internal" not in path, f"{path} is private")


def quickstart_is_enough(build):
    """tools/quickstart builds every installed file."""
    with open(os.path.join(SOURCE, "tools", "quickstart"), encoding="utf-8") as file:
        targets = re.search(r"^tools/build release (.+)$", file.read(), re.M).group(1).split()
    made = re.findall(r" -o (\S+)", run("ninja", "-C", build, "-t", "commands", *targets))
    with open(os.path.join(build, "install_manifest.txt"), encoding="utf-8") as manifest:
        installed = {os.path.basename(line.strip()) for line in manifest}
    binaries = [path for path in re.findall(r" -o (\S+)", run("ninja", "-C", build, "-t", "commands", "all"))
                if os.path.basename(path) in installed]
    missing = [path for path in binaries if path not in made]
    want(len(binaries) > 4 and not missing, f"installed, but not built by tools/quickstart: {missing} of {binaries}")


def sdk(build, _, work):
    """The component sdk has only the SDK; its template and examples build with both compilers."""
    prefix = os.path.join(work, "sdk_prefix")
    fresh(prefix)
    run("cmake", "--install", build, "--component", "sdk", "--prefix", prefix)
    have = files_below(prefix)
    for path in ("share/weir/sdk/README.md", "share/weir/sdk/CHANGELOG.md", "share/weir/sdk/template/my_device.cc"):
        want(path in have, f"{path} is not installed; there are:\n" + "\n".join(have))
    foreign = [path for path in have if path.startswith(("bin/", "include/weir/core", "lib/weir")) or ".so" in path]
    want(not foreign, f"not of the SDK: {foreign}")
    share = os.path.join(prefix, "share", "weir", "sdk")
    sources = [os.path.join(share, "template")] + sorted(
        os.path.join(share, "examples", name) for name in os.listdir(os.path.join(share, "examples"))
        if os.path.isdir(os.path.join(share, "examples", name)))
    examples = os.path.join(work, "header_examples")
    fresh(examples)
    write_header_examples(examples, prefix)
    for compiler in ("g++", "clang++"):
        want(shutil.which(compiler), f"{compiler} is missing: run tools/packages build test fuzz")
        for source in sources + [examples]:
            build_in = os.path.join(work, "sdk_build", compiler, os.path.basename(source))
            shutil.rmtree(build_in, ignore_errors=True)
            configure_and_build(source, build_in, prefix, f"-DCMAKE_CXX_COMPILER={compiler}")


def write_header_examples(folder, prefix):
    """A project of all examples in the comments of the SDK's headers, in one source that includes every header."""
    headers = sorted(path for path in files_below(os.path.join(prefix, "include", "weir", "sdk", "cpp")))
    blocks = []
    for header in headers:
        with open(os.path.join(prefix, "include", "weir", "sdk", "cpp", header), encoding="utf-8") as file:
            blocks += re.findall(r"^ *///? ```cpp\n(.*?)^ *///? ```$", file.read(), re.S | re.M)
    want(len(blocks) >= 5, f"only {len(blocks)} examples in the comments of {headers}")
    with open(os.path.join(folder, "examples.cc"), "w", encoding="utf-8") as file:
        file.write("#include <weir/sdk/v1/plugin.h>\n")
        file.writelines(f'#include "sdk/cpp/{header}"\n' for header in headers)
        file.write("using namespace weir::sdk;\n")
        file.writelines(re.sub(r"^ *///? ?", "", block, flags=re.M) for block in blocks)
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.25)\nproject(examples LANGUAGES CXX)\n"
                   "find_package(weir REQUIRED COMPONENTS sdk)\nadd_library(examples OBJECT examples.cc)\n"
                   "target_link_libraries(examples PRIVATE weir::sdk)\n"
                   "target_compile_options(examples PRIVATE -Wall -Wextra -Werror)\n")


def build_folder(build, _, work):
    """A program finds the package in a build folder without an install, and runs with its plugins."""
    source = os.path.join(work, "from_build")
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "tests", "install", "consumer"), source)
    with open(os.path.join(source, "fit.cc"), "w", encoding="utf-8") as file:
        file.write(readme_example())
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEIR_")}
    run("cmake", "-G", "Ninja", "-S", source, "-B", os.path.join(source, "build"), f"-Dweir_DIR={build}",
        "-DCMAKE_BUILD_TYPE=Debug", env=environment)
    run("ninja", "-C", os.path.join(source, "build"), "fit", env=environment)
    said = run(os.path.join(source, "build", "fit"), env=environment)
    want(re.match(r"y = \S+ x \+ \S+\n$", said), f"the example printed {said!r}")


def exports(_, prefix, __):
    """The library exports weir's own names, but no names of dependencies or protobuf messages."""
    libraries = [path for path in files_below(prefix) if re.search(r"libweir\.so\.\d+\.\d+$", path)]
    want(len(libraries) == 1, f"wanted one library with SOVERSION major.minor, got {libraries}")
    names = [line.split(None, 2)[2] for line in
             run("nm", "-DC", "--defined-only", os.path.join(prefix, libraries[0])).splitlines()]
    ours = re.compile(r"(vtable for |typeinfo (name )?for |VTT for |non-virtual thunk to |guard variable for )?weir::"
                      r"|.*\bweir::(?!tf::)")
    foreign = [name for name in names if not ours.match(name)]
    want(len(names) > 100, f"only {len(names)} names are exported")
    want(not foreign, "exported, but not of weir's API:\n" + "\n".join(foreign[:20]))
    messages = [name for name in names if re.match(r"(vtable for |typeinfo (name )?for )?weir::tf::", name)]
    want(not messages, "messages are exported:\n" + "\n".join(messages[:20]))


def readme_example():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as readme:
        return re.search(r"```cpp\n(.*?)```", readme.read(), re.S).group(1)


def program(_, prefix, work):
    """The README's example, built externally, prints its line; another program gets all reports of a session."""
    source = os.path.join(work, "consumer")
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "tests", "install", "consumer"), source)
    code = readme_example()
    with open(os.path.join(source, "fit.cc"), "w", encoding="utf-8") as file:
        file.write(code)
    lines = [line for line in code.splitlines() if line.strip()]
    want(len(lines) <= 20, f"the README's example has {len(lines)} lines, wanted at most 20")
    configure_and_build(source, os.path.join(source, "build"), prefix)
    said = run(os.path.join(source, "build", "fit"))
    numbers = re.match(r"y = (\S+) x \+ (\S+)\n$", said)
    want(numbers and abs(float(numbers.group(1)) - 3) < 1e-2 and abs(float(numbers.group(2)) - 1) < 1e-2,
         f"the example printed {said!r}, wanted about y = 3 x + 1")
    sizes = run(os.path.join(source, "build", "reports")).split()
    want(len(sizes) == 4 and all(int(size) > 20 for size in sizes), f"reports of these sizes: {sizes}")


def plugin(_, prefix, work):
    """A copy of sdk/template builds with the SDK alone, passes weir check and has a device."""
    source = os.path.join(work, "template")
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(os.path.join(prefix, "share", "weir", "sdk", "template"), source)
    build = os.path.join(source, "build")
    configure_and_build(source, build, prefix)
    folder = os.path.join(build, "lib", "weir", "plugins")
    made = [name for name in os.listdir(folder) if name.endswith(".so")]
    want(made, f"no plugin in {folder}")
    weir = os.path.join(prefix, "bin", "weir")
    for name in made:
        run(weir, "check", os.path.join(folder, name))
    environment = dict(os.environ, WEIR_PLUGIN_PATH=folder)
    devices = run(weir, "devices", "--json", env=environment)
    want('"name"' in devices, "the plugin brings no device:\n" + devices)
    run_graph(prefix, folder, work)


SUM = """
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor {
    dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "a" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "minus" op: "Neg" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
"""


def run_graph(prefix, folder, work):
    """A graph runs on the template's device beside the shipped plugins."""
    both = os.path.join(work, "both", "plugins")
    shutil.rmtree(os.path.dirname(both), ignore_errors=True)
    # With the folders beside it, which plugins load from: the backend of compiler_llvm.
    shutil.copytree(os.path.join(prefix, "lib", "weir"), os.path.dirname(both))
    shutil.copy(os.path.join(folder, "my_device.so"), both)
    graph = os.path.join(work, "sum.pbtxt")
    with open(graph, "w", encoding="utf-8") as file:
        file.write(SUM)
    out = os.path.join(work, "out")
    said = json.loads(run(os.path.join(prefix, "bin", "weir"), "run", graph, "--feed", "x=[10,20]", "--fetch", "minus",
                          "--device", "MY:0", "--json", "--out-dir", out, env=dict(os.environ, WEIR_PLUGIN_PATH=both)))
    on_device = [nodes for name, nodes in said["placement"].items() if name.endswith("device:MY:0")]
    want(on_device == [2], f"wanted both nodes on MY:0, got {said['placement']}")
    with open(os.path.join(out, "minus.npy"), "rb") as file:
        values = struct.unpack("<2f", file.read()[-8:])
    want(values == (-11.0, -22.0), f"the device computed {values}")


if __name__ == "__main__":
    test, build_dir, work_dir = sys.argv[1:]
    os.makedirs(work_dir, exist_ok=True)
    {"Tree": tree, "Exports": exports, "Program": program, "Plugin": plugin, "Sdk": sdk,
     "BuildFolder": build_folder}[test](
        build_dir, os.path.join(work_dir, "prefix"), work_dir)
    print(f"install.{test}: passed")
