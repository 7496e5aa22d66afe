#!/bin/sh
# Runs "$@" on a board of the rig: the caller has made a private mount namespace, so that nothing here is seen outside.
# The root is this host's, with /dev, /sys and os-release of the board's own. $1 is the board's folder.
set -eu
board=$1
shift

root=$board/root
mount --rbind / "$root"
mount -t tmpfs -o mode=755 stand-in "$root/dev"
for device in null zero full random urandom tty; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -m 1777 "$root/dev/shm"
mkdir "$root/dev/dri" "$root/dev/dma_heap"
: >"$root/dev/kmsg"
mount --bind "$board/kmsg" "$root/dev/kmsg"
for node in $(cd "$board/sys/class/drm" && echo *); do
  case $node in card* | renderD*) : >"$root/dev/dri/$node" ;; esac
done
: >"$root/dev/dma_heap/system"
mount --rbind "$board/sys" "$root/sys"
mount --bind "$board/os-release" "$root$(readlink -f /etc/os-release)"
# What the scripts beside this one look for before they start anything.
: >"$root/dev/rknpu-stand-in"
exec chroot "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
