#!/usr/bin/env bash
# Builds what a release has. See docs/releasing.md.
#
#	release.sh VERSION OUT      VERSION may be empty: then Go makes a pseudo-version of the commit
#
# It builds what is committed, in a clone that has the tag: so Go itself writes version and commit into the programs, as
# it does for `go install`. All times are that of the commit. The tools are in .bin: see the Makefile.
set -euo pipefail
export LC_ALL=C TZ=UTC CGO_ENABLED=0 GOFLAGS= GOWORK=off
umask 022

version=$1 out=$2 platforms='linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64'
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$(git -C "$root" status --porcelain)" ]; then
	echo "release.sh: only what is committed is built" >&2
fi

rm -rf "$out" && mkdir -p "$out" && out=$(cd "$out" && pwd)
git clone --quiet "$root" "$work/src" && cd "$work/src"
if [ -n "$version" ] && [ "$(git rev-parse -q --verify "$version^{commit}")" != "$(git rev-parse HEAD)" ]; then
	git tag "$version" # of the clone; fails if another commit has it
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	echo "build $platform"
	GOOS=$os GOARCH=$arch go build -trimpath -buildvcs=true -ldflags '-s -w' -o "$work/bin/$os-$arch/" ./cmd/rota
done
rota=$work/bin/linux-$(go env GOHOSTARCH)/rota
VERSION=$("$rota" version -o json | sed -n 's/.*"rota": *"v\([^"]*\)".*/\1/p')
export VERSION

# What all platforms have. The licences of all that is linked must come with the program.
doc=files/usr/share/doc/rota man=files/usr/share/man/man1
mkdir -p "$doc" "$man" files/completions
cp README.md CHANGELOG.md LICENSE "$doc"
for os in linux darwin windows; do
	GOOS=$os go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/rota
done | sort -u | { echo "go $(go env GOVERSION) $(go env GOROOT)" && cat; } | while read -r module v dir; do
	find "$dir" -maxdepth 1 -iregex '.*/\(licen[cs]e\|copying\|notice\)[^/]*' ! -name '*.go' | sort | while read -r file; do
		printf '==== %s %s: %s\n\n' "$module" "$v" "$(basename "$file")" && cat "$file" && echo
	done
done >"$doc/THIRD_PARTY_LICENSES"
"$rota" man "$man"
for shell in bash zsh fish; do "$rota" completion $shell >files/completions/rota.$shell; done
"$rota" completion powershell >files/completions/rota.ps1

# settle gives files the time of the commit.
settle() { find "$@" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }
archive() { tar --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -C "$work" -cf - "$1"; }

for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/} name=rota_${VERSION}_${platform%/*}_${platform#*/}
	echo "pack $platform"
	mkdir "$work/$name"
	cp -r "$work/bin/$os-$arch/." "$doc/." files/completions "$work/$name/"
	if [ "$os" = windows ]; then
		settle "$work/$name" && (cd "$work" && find "$name" | sort | zip -q -X "$out/$name.zip" -@)
	else
		cp -r "$man" "$work/$name/" && settle "$work/$name" && archive "$name" | gzip -n9 >"$out/$name.tar.gz"
	fi
	cyclonedx-gomod bin -json -std -noserial -notimestamp -version "v$VERSION" -output "$out/$name.cdx.json" \
		"$work/bin/$os-$arch"/rota*
done

gzip -n9 "$man"/*
images=()
for ARCH in amd64 arm64; do
	export ARCH
	mkdir -p files/usr/bin && cp "$work/bin/linux-$ARCH/rota" files/usr/bin/ && settle files packaging
	for packager in deb rpm; do
		nfpm package --config packaging/nfpm.yaml --packager $packager --target "$out" >/dev/null
	done
	tree=$work/tree-$ARCH
	mkdir -p "$tree"/{tmp,etc/ssl/certs,usr/bin,usr/share/doc} && chmod 1777 "$tree/tmp"
	cp files/usr/bin/rota "$tree/usr/bin/" && cp -r "$doc" "$tree/usr/share/doc/"
	echo 'rota:x:65532:65532::/:/' >"$tree/etc/passwd" && echo 'rota:x:65532:' >"$tree/etc/group"
	images+=("$ARCH=$tree")
done
echo "pack the image"
go -C packaging/image run . -version "v$VERSION" -commit "$commit" -time "$SOURCE_DATE_EPOCH" "$work/image" "${images[@]}"
settle "$work/image"
tar --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -C "$work/image" -cf "$out/rota_${VERSION}_oci.tar" .
echo "pack the chart"
go -C packaging/deploy run . -version "v$VERSION" -time "$SOURCE_DATE_EPOCH" -license ../../LICENSE ../chart "$out"

(cd "$out" && sha256sum -- * >SHA256SUMS)
