// Deploy packs the chart of a release, the same bytes for the same input.
//
//	deploy -version v0.1.0 -time 1764230000 -license LICENSE CHART OUT
//
// Its tests check ../chart without a cluster, and ../../examples/compose without Docker.
package main

import (
	"flag"
	"log"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

type release struct {
	version, license string
	time             time.Time
}

func main() {
	log.SetFlags(0)
	version := flag.String("version", "", "tag of the release")
	seconds := flag.Int64("time", 0, "when its commit was made, in seconds since 1970")
	license := flag.String("license", "", "file with the license")
	flag.Parse()
	r := release{version: *version, license: *license, time: time.Unix(*seconds, 0).UTC()}
	if _, err := r.pack(flag.Arg(0), flag.Arg(1)); err != nil {
		log.Fatalf("pack the chart: %v", err)
	}
}

// pack writes the archive into the directory out, and returns its name.
func (r release) pack(dir, out string) (string, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return "", err
	}
	license, err := os.ReadFile(r.license)
	if err != nil {
		return "", err
	}
	c.Files = append(c.Files, &common.File{Name: "LICENSE", Data: license})
	c.Metadata.Version = strings.TrimPrefix(r.version, "v")
	c.Metadata.AppVersion = c.Metadata.Version
	c.ModTime, c.SchemaModTime = r.time, r.time
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, f := range files {
			f.ModTime = r.time
		}
	}
	return util.Save(c, out)
}
