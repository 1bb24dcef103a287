#!/bin/sh
# Install Intel's offline compiler (ocloc with IGC) and spirv-val into a folder of their own, on Debian:
#   scripts/install-ocloc.sh [DEST]      DEST: MLTRITON_XE_PREFIX, or ~/.local/share/mltriton/xe
# The packages come from Debian unstable through the mirror that this machine's apt uses; nothing is installed into the
# system. They need a newer C library than stable distributions have, so that comes along and the programs are started
# through its loader.
set -eu

# What the tests' figures were measured with. A mirror that has moved on gives its own version, with a warning.
PINNED="intel-ocloc=26.27.39122.14-1 libigc2=2.40.14-1 spirv-tools=2026.4~rc2-1"
LIBRARIES="libc6 libstdc++6 libgcc-s1 zlib1g"
PROGRAMS="ocloc spirv-val spirv-dis"

DEST=${1:-${MLTRITON_XE_PREFIX:-${XDG_DATA_HOME:-$HOME/.local/share}/mltriton/xe}}
mkdir -p "$DEST"
DEST=$(cd "$DEST" && pwd)
if [ -x "$DEST/ocloc" ] && "$DEST/ocloc" --version >/dev/null 2>&1; then
    echo "$DEST/ocloc is installed already"
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
    echo "install-ocloc.sh needs Debian or a relative of it on x86-64" >&2
    exit 1
fi

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$WORK/lists/partial" "$WORK/cache/archives/partial" "$WORK/debs" "$WORK/root"
chmod 755 "$WORK"

MIRROR=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n 's/^#.*//; s/.*\(https\{0,1\}:\/\/[^ ]*\/debian\)\/\{0,1\}\( .*\)\{0,1\}$/\1/p' | head -n 1)}
if [ -z "$MIRROR" ]; then
    echo "install-ocloc.sh finds no Debian mirror in /etc/apt; set MIRROR to its address" >&2
    exit 1
fi
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$KEYRING] $MIRROR sid main" >"$WORK/sources.list"

apt() {
    command apt-get -qq \
        -o Dir::Etc::sourcelist="$WORK/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$WORK/lists" -o Dir::Cache="$WORK/cache" -o APT::Sandbox::User=root "$@"
}
apt update

cd "$WORK/debs"
for package in $PINNED; do
    name=${package%%=*}
    if ! apt download "$package" 2>/dev/null; then
        apt download "$name/sid"
        echo "warning: the mirror has no $package; installed $(ls "$name"_*.deb)" >&2
    fi
done
for name in $LIBRARIES; do
    apt download "$name/sid"
done
for deb in *.deb; do
    dpkg-deb -x "$deb" "$WORK/root"
done

LIB=usr/lib/x86_64-linux-gnu
mkdir -p "$DEST/bin" "$DEST/lib"
for library in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libstdc++.so.6 libgcc_s.so.1 libz.so.1; do
    cp -L "$WORK/root/$LIB/$library" "$DEST/lib/"
done
for library in "$WORK/root/$LIB"/libigc.so.* "$WORK/root/$LIB"/libiga64.so.* "$WORK/root/$LIB"/libocloc*.so*; do
    [ -f "$library" ] && cp -P "$library" "$DEST/lib/"
done
cp "$WORK"/root/usr/bin/ocloc-* "$DEST/bin/ocloc"
cp "$WORK/root/usr/bin/spirv-val" "$WORK/root/usr/bin/spirv-dis" "$DEST/bin/"

for program in $PROGRAMS; do
    cat >"$DEST/$program" <<X
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
exec "\$here/lib/ld-linux-x86-64.so.2" --library-path "\$here/lib" "\$here/bin/$program" "\$@"
X
    chmod +x "$DEST/$program"
done
echo "installed ocloc $("$DEST/ocloc" --version) in $DEST"
