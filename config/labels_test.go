package config

import (
	"maps"
	"testing"
)

func TestLabels(t *testing.T) {
	want := map[string]string{"zone": "b", "disk": "ssd"}
	for _, text := range []string{"labels: {zone: b, disk: ssd}\n", "labels:\n  zone: b\n  disk: ssd\n", "labels: disk=ssd,zone=b\n"} {
		f, err := Load(write(t, text+minimal), nil)
		if err != nil || !maps.Equal(f.Labels, want) {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
	f, err := Load(write(t, "labels: {zone: b}\n"+minimal), flagSet(t, "labels", "zone=c"))
	if err != nil || !maps.Equal(f.Labels, map[string]string{"zone": "c"}) {
		t.Errorf("with a flag: %v, %v", f, err)
	}
	if f, err := Load(write(t, minimal), nil); err != nil || len(f.Labels) > 0 {
		t.Errorf("without labels: %v, %v", f, err)
	}
	for text, want := range map[string]string{
		"labels: {Zone: b}":      "labels (Zone=b): label (Zone) must be a name of a to z, digits and -._/ with at most 63 characters",
		"labels: {zone: 'a b'}":  "labels (zone=a b): label zone (a b) must have a value of letters, digits and -._ with at most 63 characters",
		"labels: {host: web1}":   "labels (host=web1): label host: each server has it already, with the name of its host",
		"labels: zone":           "labels (zone): must be a list such as disk=ssd,zone=b, each label once",
		"labels: {zone: [a, b]}": "labels.zone: must be a single value, not a list or mapping",
	} {
		path := write(t, text+"\n"+minimal)
		_, err := Load(path, nil)
		wantLines(t, err, path+":1: "+want)
	}
}
