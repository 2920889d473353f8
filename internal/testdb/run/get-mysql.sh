# Unpacks the newest MySQL server of Debian's archive and what it needs, without installing anything, and makes the data
# of an empty server, which testdb copies for each server.
#
#   get-mysql.sh CACHE        about 60 MB to fetch; CACHE/mysql-VERSION then has 400 MB
#
# Only "unstable" has MySQL. Its libc is newer than the system's, so that the programs run by a loader of their own. The
# address of the archive is that of apt's own sources. Two processes that start at once both unpack, and one of them is
# the first to rename.
set -eu
cache=$1

refuse() {
	echo "get MySQL: $1: start the servers of compose.yaml, or set ROTA_TEST_MYSQL_URL" >&2
	exit 1
}

command -v dpkg-deb >/dev/null || refuse "this system has no dpkg-deb"
archive=$(apt-get indextargets --format '$(REPO_URI)' | sort -u | grep -m1 '/debian/$') ||
	refuse "apt has no archive of Debian among its sources"

mkdir -p "$cache"
new=$(mktemp -d "$cache/unpacking.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

apt=$new/apt root=$new/root/usr
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
echo "deb [signed-by=$(ls /usr/share/keyrings/debian-archive-keyring.* | head -n 1)] $archive unstable main" >"$apt/sources.list"
# Without a list of installed packages, apt fetches everything that the server needs.
get() {
	apt-get -qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$apt/cache" \
		-o Acquire::Languages=none -o APT::Sandbox::User= -o APT::Install-Recommends=false -o Debug::NoLocking=1 "$@"
}
get update
get -y --download-only install mysql-server-core mysql-client-core
version=$(dpkg-deb -f "$apt"/cache/archives/mysql-server-core*.deb Version | sed 's/.*: *//')
for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$new/root"; done
rm -rf "$apt" "$root"/share/doc "$root"/share/man "$root"/share/perl* "$root"/lib/*/perl*

for loader in "$root"/lib64/ld-linux* "$root"/lib/ld-linux* "$root"/lib/*/ld-linux*; do
	[ ! -x "$loader" ] || break
done
libraries=$(ls -d "$root"/lib/*-linux-gnu*)
# Usage: wrap PROGRAM [OPTION ...]. The first option may have to stay the first, such as --no-defaults.
wrap() {
	program=$1
	shift
	cat >"$new/${program##*/}" <<-END
		#!/bin/sh
		usr=\${0%/*}/root/usr
		exec "\$usr${loader#"$root"}" --library-path "\$usr${libraries#"$root"}" "\$usr/$program" "\$@" $*
	END
	chmod +x "$new/${program##*/}"
}
wrap sbin/mysqld '--basedir="$usr" --plugin-dir="$usr/lib/mysql/plugin"'
wrap bin/mysqladmin
wrap bin/mysqldump

cat >"$new/init.sql" <<'END'
CREATE USER root@'%' IDENTIFIED BY '';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
CREATE DATABASE test;
END
"$new/mysqld" --no-defaults --initialize-insecure --user="$(id -un)" --datadir="$new/data" --init-file="$new/init.sql" \
	--innodb-redo-log-capacity=16M --skip-log-bin 2>"$new/log" || {
	cat "$new/log" >&2
	exit 1
}
rm -f "$new/data/auto.cnf" # the identity of a server; each gets its own

mv -T "$new" "$cache/mysql-$version" 2>/dev/null || [ -d "$cache/mysql-$version" ] || refuse "cannot rename $new"
