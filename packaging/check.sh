#!/usr/bin/env bash
# Tries what a release has, on Linux and as root: check.sh OUT. It changes nothing on this machine: packages are
# installed into a copy of it, an overlay in memory that ends with the script. It needs dpkg, rpm and man.
set -euo pipefail
if [ "${2-}" != inside ]; then exec unshare --mount "$0" "$1" inside; fi

out=$(cd "$1" && pwd)
arch=$(go env GOHOSTARCH)
top=$(mktemp -d)
mount -t tmpfs rota-check "$top"
trap 'cd / && umount -l "$top" && rmdir "$top"' EXIT
cd "$top"

fail() { echo "check.sh: $*" >&2; exit 1; }
# has LIST WORD... expects each word as a whole line of the list.
has() { local list=$1 line; shift; for line; do grep -qxF -e "$line" <<<"$list" || fail "no $line in: $list"; done; }

echo '== checksums'
(cd "$out" && sha256sum --quiet -c SHA256SUMS)
has "$(cut -c 67- "$out/SHA256SUMS")" $(cd "$out" && ls --ignore=SHA256SUMS)

echo '== archives'
for archive in "$out"/rota_*.tar.gz "$out"/*.zip; do
	list=$(case $archive in *.zip) unzip -Z1 "$archive" ;; *) tar -tzf "$archive" ;; esac | sed 's|^[^/]*/||')
	has "$list" LICENSE README.md CHANGELOG.md THIRD_PARTY_LICENSES completions/rota.bash completions/rota.ps1
	case $archive in *.zip) has "$list" rota.exe ;; *) has "$list" rota man1/rota.1 man1/rota-worker.1 ;; esac
done
mkdir archive && tar -xzf "$out"/rota_*_linux_"$arch".tar.gz -C archive --strip-components=1
(! ldd archive/rota >/dev/null 2>&1) || fail 'the program is not static'
archive/rota version
bash -n archive/completions/rota.bash
man --warnings -l archive/man1/rota-worker.1 >/dev/null
for module in github.com/lib/pq std modernc.org/sqlite; do
	grep -q "\"name\": \"$module\"" "$out"/rota_*_linux_"$arch".cdx.json || fail "the SBOM does not name $module"
done

echo '== chart'
list=$(tar -tzf "$out"/rota-*.tgz)
has "$list" rota/Chart.yaml rota/LICENSE rota/values.yaml rota/values.schema.json rota/templates/worker.yaml
grep -qx "appVersion: $(archive/rota version -o json | sed -n 's/.*"rota": *"v\([^"]*\)".*/\1/p')" \
	<(tar -xzOf "$out"/rota-*.tgz rota/Chart.yaml) || fail 'the chart has another version than the program'

echo '== image'
mkdir -p layout image && tar -xf "$out"/rota_*_oci.tar -C layout
python3 - layout "$arch" image <<'EOF'
import json, sys, tarfile
layout, arch, to = sys.argv[1:]
read = lambda d: json.load(open(f"{layout}/blobs/{d['digest'].replace(':', '/')}"))
index = read(json.load(open(f"{layout}/index.json"))["manifests"][0])
manifest = read(next(m for m in index["manifests"] if m["platform"]["architecture"] == arch))
config = read(manifest["config"])["config"]
assert config["User"] == "65532:65532" and config["Entrypoint"] == ["/usr/bin/rota"], config
assert len(config["Labels"]["org.opencontainers.image.revision"]) == 40, config
for layer in manifest["layers"]:
    tarfile.open(f"{layout}/blobs/{layer['digest'].replace(':', '/')}").extractall(to, numeric_owner=True)
EOF
for dir in proc dev; do mkdir image/$dir && mount --rbind /$dir image/$dir; done # as a container has
in_image() { chroot --userspec=65532:65532 image /usr/bin/rota "$@"; }
in_image version >/dev/null
in_image demo >demo.txt || fail "rota demo in the image: $(cat demo.txt)"
grep 'exactly once' demo.txt
[ "$(grep -c BEGIN image/etc/ssl/certs/ca-certificates.crt)" -gt 100 ] || fail 'the image lacks certificates'

echo '== deb'
mkdir upper lower machine
mount -t overlay overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/lower" machine
cp "$out"/rota_*_"$arch".deb machine/rota.deb
# in a copy of this machine; /proc and /sys are missing, so that no systemd is running there
inside() { env -u SOURCE_DATE_EPOCH chroot machine "$@"; }
inside dpkg -i /rota.deb >/dev/null
inside getent passwd rota
inside rota version >/dev/null
for unit in machine/usr/lib/systemd/system/rota*.service; do
	inside systemd-analyze verify --man=no "${unit#machine}"
done
inside sh -c 'echo kept >/etc/rota/rota.yaml'
inside dpkg -i /rota.deb >/dev/null # an upgrade
inside dpkg --purge rota >/dev/null
[ "$(cat machine/etc/rota/rota.yaml)" = kept ] || fail 'purge has removed a configuration'
[ ! -e machine/usr/bin/rota ] || fail 'purge has left the program'

echo '== rpm'
rpm -K --nosignature "$out"/rota-*.rpm
has "$(rpm -qlp "$out"/rota-*.x86_64.rpm)" /usr/bin/rota /usr/lib/systemd/system/rota.service /etc/rota \
	/usr/share/man/man1/rota.1.gz /usr/share/doc/rota/THIRD_PARTY_LICENSES
cp "$out"/rota-*."$(uname -m)".rpm machine/rota.rpm
inside rpm --force-debian --dbpath /rpmdb --nodeps -i /rota.rpm # the data of rpm does not know what Debian has installed
inside rota version >/dev/null
inside rpm --force-debian --dbpath /rpmdb -e rota
[ "$(cat machine/etc/rota/rota.yaml)" = kept ] || fail 'rpm -e has removed a configuration'
[ ! -e machine/usr/bin/rota ] || fail 'rpm -e has left the program'
