#!/bin/sh
# Build a real Kubernetes control plane for `pytest -m kubernetes`: etcd, API server, controllers and scheduler.
#
#     tests/kubernetes/build.sh FOLDER        # as root on Debian 12; about 7 CPU-minutes and 2.5 GB, once
#     DTF_KUBERNETES_BIN=FOLDER pytest -m kubernetes
#
# Debian's source package is upstream's whole tree with its vendored modules, so the build needs no module proxy.
# FOLDER ends with the binaries alone (about 300 MB). A binary that is there already is not built again.
set -eu

if [ $# != 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
binaries=kube-apiserver\ kube-controller-manager\ kube-scheduler
mkdir -p "$1"
folder=$(cd "$1" && pwd)

is_built() {
    for name in $binaries etcd; do
        [ -x "$folder/$name" ] || return 1
    done
}

if is_built; then
    echo "$folder has everything"
    exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/kubernetes-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

apt-get install -y -qq --no-install-recommends \
    dpkg-dev etcd-server golang-1.19-go golang-github-modern-go-reflect2-dev make rsync >"$work/apt.log" || {
    cat "$work/apt.log" >&2
    exit 1
}

# The system's own lists of packages stay as they are.
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" \
    >"$work/apt/sources.list"
cat >"$work/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
CONF
export APT_CONFIG="$work/apt/apt.conf"
cd "$work"
apt-get update -qq
apt-get source -qq --download-only kubernetes
mkdir tree
tar xzf kubernetes_*.orig.tar.gz --strip-components=1 -C tree
cd tree

# The vendored reflect2 1.0.1 does not fit Go 1.18 and later: the API server would die at the first custom resource.
reflect2=vendor/github.com/modern-go/reflect2
rm "$reflect2"/*.go "$reflect2"/*.s
cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.go /usr/share/gocode/src/github.com/modern-go/reflect2/*.s \
    "$reflect2/"

cat >"$work/version" <<VERSION
KUBE_GIT_VERSION='v1.20.2'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
KUBE_GIT_COMMIT='debian'
KUBE_GIT_TREE_STATE='archive'
VERSION
what=
for name in $binaries; do
    what="$what cmd/$name"
done
PATH="/usr/lib/go-1.19/bin:$PATH" CGO_ENABLED=0 GOPROXY=off GOFLAGS=-p=2 GOCACHE="$work/cache" \
    KUBE_GIT_VERSION_FILE="$work/version" nice make WHAT="${what# }"
for name in $binaries; do
    cp "_output/local/go/bin/$name" "$folder/"
done
cp "$(command -v etcd)" "$folder/"
echo "built: $folder"
