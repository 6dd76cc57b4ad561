#!/usr/bin/env bash
# An outside consumer of an installed weir: builds the SDK's template and a small program with nothing but the prefix,
# checks the plugin, runs a graph on its device. Arguments: build folder, source folder, work folder.
set -euo pipefail
build=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
weir=$prefix/bin/weir

# The template sees no source tree: it is copied out.
cp -r "$source/sdk/template" "$work/template"
cmake -S "$work/template" -B "$work/template/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/template.log"
cmake --build "$work/template/build" >>"$work/template.log"
plugin=$work/template/build/lib/weir/plugins/my_device.so
"$weir" check "$plugin"

cp "$plugin" "$prefix/lib/weir/plugins/"
"$weir" devices | grep -q 'device:MY:0'
cat >"$work/sum.pbtxt" <<'GRAPH'
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "sum" op: "AddV2" input: "a" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "minus" op: "Neg" input: "sum" attr { key: "T" value { type: DT_FLOAT } } }
GRAPH
"$weir" run "$work/sum.pbtxt" --feed 'x=[10,20]' --fetch minus --device MY:0 --json --out-dir "$work/out" >"$work/run.json"
grep -q 'device:MY:0": *2' "$work/run.json" || { cat "$work/run.json"; exit 1; }
python3 - "$work/out/minus.npy" <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
values = struct.unpack("<2f", data[-8:])
assert values == (-11.0, -22.0), values
PY

# A program of the user's own against weir::weir.
cp -r "$source/tests/install/consumer" "$work/consumer"
cmake -S "$work/consumer" -B "$work/consumer/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/consumer.log"
cmake --build "$work/consumer/build" >>"$work/consumer.log"
WEIR_PLUGIN_PATH=$prefix/lib/weir/plugins "$work/consumer/build/consumer" | grep -qx '7'
echo "install: template built, checked and run; consumer linked and run"
