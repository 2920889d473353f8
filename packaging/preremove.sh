#!/bin/sh
# Stops the units before the last version is removed: "remove" on Debian, 0 on Red Hat.
set -e
case "$1" in
remove | 0) if [ -d /run/systemd/system ]; then
	systemctl disable --now rota-witness.service rota-console.service rota.service
fi ;;
esac
