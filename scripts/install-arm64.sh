#!/bin/sh
# Make a Python for AArch64 that runs on this x86-64 Debian by emulation, with what the tests need:
#   scripts/install-arm64.sh DEST        then DEST/python -m pytest ...
# Debian's python3 of this release for arm64 and qemu's user emulation come from the mirror that this machine's apt uses,
# wheels from the package index that pip uses; nothing is installed into the system.
set -eu

DEST=${1:?install-arm64.sh DEST}
mkdir -p "$DEST"
DEST=$(cd "$DEST" && pwd)
if [ -x "$DEST/python" ] && "$DEST/python" -c 'import llvmlite' 2>/dev/null; then
    echo "$DEST/python is installed already"
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
    echo "install-arm64.sh needs Debian or a relative of it on x86-64" >&2
    exit 1
fi
ROOT=$DEST/root
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$WORK/lists/partial" "$WORK/cache/archives/partial" "$ROOT"
chmod 755 "$WORK"
: >"$WORK/status"

apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status="$WORK/status" \
        -o Dir::State::lists="$WORK/lists" -o Dir::Cache="$WORK/cache" -o APT::Sandbox::User=root "$@"
}
apt update
apt install -y --no-install-recommends --download-only python3 libgomp1 libstdc++6 zlib1g >/dev/null
for deb in "$WORK"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$ROOT"
done
(cd "$WORK" && apt-get -qq -o APT::Sandbox::User=root download qemu-user-static)
dpkg-deb --fsys-tarfile "$WORK"/qemu-user-static_*.deb | tar -x -C "$DEST" --strip-components=3 ./usr/bin/qemu-aarch64-static

version=$(basename "$ROOT"/usr/bin/python3.[0-9]*)
"${PYTHON:-python3}" -m pip install --quiet --target "$DEST/site" --only-binary=:all: --python-version "${version#python}" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
    'llvmlite>=0.50,<0.51' 'numpy>=1.26' pytest pytest-xdist 'hypothesis>=6' filecheck rich typer

# The wrapper names itself as the interpreter, so that a program that starts Python again gets it, too.
cat >"$DEST/python" <<X
#!/bin/sh
exec "$DEST/qemu-aarch64-static" -L "$ROOT" -0 "$DEST/python" \\
    -E PYTHONPATH="\${PYTHONPATH:+\$PYTHONPATH:}$DEST/site" "$ROOT/usr/bin/$version" "\$@"
X
chmod +x "$DEST/python"
"$DEST/python" -c 'import llvmlite, numpy, platform; print("installed Python", platform.python_version(), platform.machine())'
