"""gpu_tools_test.py TEST SOURCE_DIR BUILD_DIR: tools/gpu/check and tools/gpu/bundle on the emulation."""
import os
import subprocess
import sys
import tempfile

LEAST_PASSES = 12  # memory options and rules


def run(arguments, folder, **more):
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, errors="replace", check=False, **more)
    return done.returncode, done.stdout + done.stderr


def check_report(file, status, output):
    assert status == 0, output
    with open(file, encoding="utf-8") as report:
        text = report.read()
    assert "emulation only, no card" in text and "No card was used" in text, text
    assert text.count("| pass |") >= LEAST_PASSES, text
    assert "FAIL" not in text and "\n0 failed" in text, text
    for row in ("launches 1000", "cap below the largest tensor", "chain 8", "compute-sanitizer", "gpu_emulated"):
        assert row in text, row + " is missing in:\n" + text


def test_check(source, build, work):
    script = os.path.join(source, "tools", "gpu", "check")
    status, output = run([script, "--root", build, "--quick", "--emulated", "--data", "", "--out", "r.md"], work)
    check_report(os.path.join(work, "r.md"), status, output)
    # A root without a program is told, and no report is written.
    status, output = run([script, "--root", work, "--out", "none.md"], work)
    assert status != 0 and "has no bin/weir" in output, output
    assert not os.path.exists(os.path.join(work, "none.md"))


def test_bundle(source, _, work):
    archive = os.path.join(work, "bundle.tar.xz")
    script = os.path.join(source, "tools", "gpu", "bundle")
    status, output = run([script, "--no-build", archive], source, env=dict(os.environ, WEIR_BUNDLE_LEVEL="3"))
    assert status == 0, output
    assert os.path.getsize(archive) < 50 << 20, output
    assert run(["tar", "xf", archive], work)[0] == 0
    root = os.path.join(work, "weir_gpu_check")
    for file in ("MANIFEST", "bin/weir", "lib/weir/gpu_emulated/gpu_emulated.so", "share/weir/op_cases/array.txt"):
        assert os.path.exists(os.path.join(root, file)), file
    # Elsewhere, without what the build left in the environment.
    plain = {"PATH": "/usr/bin:/bin", "HOME": work}
    status, output = run([os.path.join(root, "check"), "--quick", "--emulated", "--out", "r.md"], work, env=plain)
    check_report(os.path.join(work, "r.md"), status, output)


def main():
    test, source, build = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as work:
        {"Check": test_check, "Bundle": test_bundle}[test](source, build, work)


if __name__ == "__main__":
    main()
