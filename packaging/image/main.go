// Image writes the container image of a release as an OCI layout: without a daemon, without a registry, and the same
// bytes for the same input.
//
//	image -version v0.1.0 -commit SHA -time 1764230000 OUT amd64=DIR arm64=DIR
//
// A DIR has the files of the image of one platform, below the root.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

type release struct {
	version, commit string
	time            time.Time
}

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "tag of the release")
	commit := flag.String("commit", "", "its commit")
	seconds := flag.Int64("time", 0, "when that was made, in seconds since 1970")
	flag.Parse()
	r := release{*version, *commit, time.Unix(*seconds, 0).UTC()}
	if err := r.write(flag.Arg(0), flag.Args()[1:]); err != nil {
		log.Fatalf("write the image: %v", err)
	}
}

// write writes the layout and checks what it has written. Its index.json names one index, with an image for each
// platform.
func (r release) write(out string, platforms []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		arch, dir, _ := strings.Cut(p, "=")
		image, err := r.image(arch, dir)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	to, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": strings.TrimPrefix(r.version, "v")}
	if err := to.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
		return err
	}
	written, err := to.ImageIndex()
	if err != nil {
		return err
	}
	return validate.Index(written)
}

func (r release) image(arch, dir string) (v1.Image, error) {
	files, err := r.files(dir)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history}); err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: r.time}
	file.Config = v1.Config{
		User:       "65532:65532", // as in distroless images
		Entrypoint: []string{"/usr/bin/rota"},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "rota",
			"org.opencontainers.image.description": "A duty roster for workers, in the SQL database that you already have",
			"org.opencontainers.image.source":      "https://github.com/dutyrota/rota",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     strings.TrimPrefix(r.version, "v"),
			"org.opencontainers.image.revision":    r.commit,
			"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, file)
}

// files returns the only layer: the files of dir, and the certificates of Mozilla, which "http" dealers and databases
// with TLS need.
func (r release) files(dir string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(header tar.Header, text []byte) error {
		header.Size, header.ModTime, header.Format = int64(len(text)), r.time, tar.FormatUSTAR
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if d.IsDir() {
			return add(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: header.Mode}, nil)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: header.Mode}, text)
	})
	if err != nil {
		return nil, err
	}
	if err := add(tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, certificates()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say what is trusted of the others
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}
