#!/usr/bin/env bash
# Proves that the tree builds and passes its tests on a fresh Debian 13 (libtorch 2.x, SimGrid 4,
# Catch2 3, g++ 14). Needs root and debootstrap; about 3 GB under CHROOT.
#
#   tests/debian13.sh [CHROOT [RELEASE]]      defaults: build/trixie trixie
#
# An existing CHROOT is used as it is. With the release bookworm the same proof runs on Debian 12.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chroot_folder=$(realpath -m "${1:-build/trixie}")
release=${2:-trixie}
mirror=http://deb.debian.org/debian

[[ $EUID -eq 0 ]] || { echo "$0: needs root, for debootstrap and chroot" >&2; exit 1; }

if [[ ! -e $chroot_folder/etc/debian_version ]]; then
  command -v debootstrap >/dev/null ||
    { echo "$0: debootstrap is missing: apt-get install debootstrap" >&2; exit 1; }
  mkdir -p "$chroot_folder"
  debootstrap --variant=minbase "$release" "$chroot_folder" "$mirror"
fi

# Programs find their presets through /proc/self/exe.
mountpoint -q "$chroot_folder/proc" || mount -t proc proc "$chroot_folder/proc"
trap 'umount "$chroot_folder/proc"' EXIT
cp /etc/resolv.conf "$chroot_folder/etc/resolv.conf"

# The tree as it stands, with what is not committed yet; the build folder of an earlier proof stays.
tree=$chroot_folder/nebula
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
  tar --null --files-from=- --create | tar --extract --directory "$tree"

run_inside() { chroot "$chroot_folder" /usr/bin/env -C /nebula "$@"; }

run_inside ./run build release
run_inside ctest --preset release -j "$(nproc)"

echo
echo "Passed on Debian $(cat "$chroot_folder/etc/debian_version") with:"
run_inside bash -c "sed 's/#.*//; s/\[.*//' packages.txt | xargs dpkg-query -W -f '\${Package} \${Version}\n' 2>/dev/null |
  grep -E '^(catch2|cmake|g[+][+]|lib|nlohmann)'"
