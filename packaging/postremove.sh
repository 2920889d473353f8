#!/bin/sh
# The user rota stays, as files may be its own, and so does what is in /etc/rota.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
