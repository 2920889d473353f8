//go:build unix

package docs_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/ops"
)

// The manifests of autoscaling.md ask for what /scale serves and the metrics have, and fit to each other.
func TestAutoscalingManifests(t *testing.T) {
	t.Parallel()
	all := map[string]keys{}
	for _, b := range readBlocks(t, "autoscaling.md") {
		if b.language != "yaml" {
			continue
		}
		for documents := yaml.NewDecoder(strings.NewReader(b.text)); ; {
			var m keys
			err := documents.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			all[m["kind"].(string)] = m
		}
	}
	trigger := at(t, all["ScaledObject"], "spec", "triggers").([]any)[0].(keys)
	metadata := trigger["metadata"].(keys)
	u, err := url.Parse(metadata["url"].(string))
	if err != nil || u.Path != "/scale" || u.Query().Get("task") != "settle" || u.Query().Get("per_worker") != "1000" {
		t.Errorf("the URL is %v (%v)", u, err)
	}
	if port := at(t, all["Service"], "spec", "ports").([]any)[0].(keys)["port"]; u.Port() != "9090" || port != 9090 {
		t.Errorf("the scaler asks port %s, and the service has %v", u.Port(), port)
	}
	var answer map[string]any
	text, err := json.Marshal(ops.Scale{Workers: 3})
	if err := errors.Join(err, json.Unmarshal(text, &answer)); err != nil || answer[metadata["valueLocation"].(string)] != 3.0 {
		t.Errorf("%v is not in %s", metadata["valueLocation"], text)
	}
	if trigger["metricType"] != "AverageValue" || metadata["targetValue"] != "1" {
		t.Error("Kubernetes would not run as many workers as /scale asks for")
	}
	hpa := all["HorizontalPodAutoscaler"]
	for _, least := range []any{at(t, hpa, "spec", "minReplicas"), at(t, all["ScaledObject"], "spec", "minReplicaCount")} {
		if least != 1 {
			t.Errorf("at least %v workers, want 1: without a worker nobody counts", least)
		}
	}
}

// at returns the value under a path of keys.
func at(t *testing.T, m keys, path ...string) (value any) {
	t.Helper()
	value = m
	for _, key := range path {
		m, ok := value.(keys)
		if !ok || m[key] == nil {
			t.Fatalf("no %s", strings.Join(path, "."))
		}
		value = m[key]
	}
	return value
}
