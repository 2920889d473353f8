#!/bin/sh
# The units are neither enabled nor started, because they need a rota.yaml and a database. An upgrade restarts nothing:
# the tables come first.
set -e
getent passwd rota >/dev/null ||
	useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin rota
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
