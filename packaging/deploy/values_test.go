package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dutyrota/rota/center"
)

// A wrong value is refused with a line that names it.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for bad, want := range map[string]string{
		"replicas: 3":                                           "additional properties 'replicas'",
		"fullnameOverride: shop.eu":                             "/fullnameOverride",
		"worker: {replicas: three}":                             "/worker/replicas",
		"worker: {replicas: -1}":                                "/worker/replicas",
		"worker: {podLabels: {a: 1}}":                           "/worker/podLabels/a",
		"worker: {extraArgs: --console}":                        "/worker/extraArgs",
		"worker: {resources: {memory: 1Gi}}":                    "/worker/resources",
		"worker: {podDisruptionBudget: {maxUnavailable: 0}}":    "/worker/podDisruptionBudget/maxUnavailable",
		"worker: {podDisruptionBudget: {maxUnavailable: half}}": "/worker/podDisruptionBudget/maxUnavailable",
		"image: {tag: 'a b'}":                                   "/image/tag",
		"image: {digest: 'sha256:12'}":                          "/image/digest",
		"image: {pullPolicy: Sometimes}":                        "/image/pullPolicy",
		"image: {repository: ''}":                               "image.repository",
		"drainTimeout: 30":                                      "/drainTimeout",
		"drainTimeout: 30 seconds":                              "/drainTimeout",
		"database: {password: secret}":                          "additional properties 'password'",
		"database: {url: 'postgres://app@db/shop'}":             "database.existingSecret and database.url: give one",
		"database: {existingSecret: ''}":                        "database.existingSecret: name the Secret",
		"database: {existingSecret: '', url: db}":               "/database/url",
		"existingConfigMap: ''":                                 "config: give the text of rota.yaml",
		"config: 'tasks: {}'":                                   "config and existingConfigMap: give one",
		"config: 'tasks: ['\nexistingConfigMap: ''":             "config: it is no YAML",
		"caCertificates: {secret: a, configMap: a}":             "caCertificates.secret and caCertificates.configMap: give one",
		"autoscaling: {minReplicas: 0}":                         "/autoscaling/minReplicas",
		"autoscaling: {enabled: true}":                          "autoscaling.backlogs",
		"autoscaling: {backlogs: [{metric: m}]}":                "/autoscaling/backlogs/0",
		"networkPolicy: {workerFrom: {}}":                       "/networkPolicy/workerFrom",
		"console: {enabled: true, oidc: {issuerURL: 'https://id', existingSecret: oidc, redirectURL: 'https://r/oauth2/callback', emailDomains: [r]}}": "networkPolicy.consoleFrom",
		"podMonitor: {enabled: true}":                                                     "networkPolicy.workerFrom",
		"worker: {service: {enabled: true}}":                                              "networkPolicy.workerFrom",
		"podMonitor: {interval: often}":                                                   "/podMonitor/interval",
		"console: {service: {port: 0}}":                                                   "/console/service/port",
		"console: {oidc: {issuerURL: id.example.com}}":                                    "/console/oidc/issuerURL",
		"console: {enabled: true, oidc: {issuerURL: 'https://id'}}":                       "console.oidc.existingSecret",
		"console: {enabled: true, oidc: {issuerURL: 'https://id', existingSecret: oidc}}": "console.oidc.redirectURL",
		"console: {enabled: true, oidc: {issuerURL: 'https://id', existingSecret: oidc, redirectURL: 'https://r/oauth2/callback'}}": "console.oidc.emailDomains",
	} {
		_, err := render(t, required, bad)
		if err == nil || !slices.ContainsFunc(strings.Split(err.Error(), "\n"), func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("%s: got %v, want a line with %s", bad, err, want)
		}
	}
}

// values.yaml and its schema have the same keys, and a comment says what each is.
func TestValuesAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(load(t).Schema, &root); err != nil {
		t.Fatal(err)
	}
	delete(root.Properties, "global") // Helm's own
	root.wantDescribed(t, root, file.Content[0], "")
}

type schema struct {
	Ref                  string `json:"$ref"`
	Definitions          map[string]schema
	Properties           map[string]schema
	AdditionalProperties any
}

// wantDescribed compares an object of values.yaml with its schema. What the schema does not go into, Kubernetes describes.
func (s schema) wantDescribed(t *testing.T, root schema, object *yaml.Node, at string) {
	t.Helper()
	if s.AdditionalProperties != false {
		t.Errorf("the schema lets in unknown values below %q", at)
	}
	var keys []string
	for i := 0; i < len(object.Content); i += 2 {
		key, value := object.Content[i], object.Content[i+1]
		path := at + key.Value
		keys = append(keys, path)
		if key.HeadComment == "" {
			t.Errorf("values.yaml does not say what %s is", path)
		}
		property := s.Properties[key.Value]
		if name, ok := strings.CutPrefix(property.Ref, "#/definitions/"); ok {
			property = root.Definitions[name]
		}
		if len(property.Properties) > 0 && !strings.HasSuffix(path, "resources") {
			property.wantDescribed(t, root, value, path+".")
		}
	}
	var want []string
	for key := range maps.Keys(s.Properties) {
		want = append(want, at+key)
	}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Errorf("values.yaml has %v, the schema %v", keys, want)
	}
}

// A pod has time to drain: what the longest drain_timeout takes, the grace, and 5 s each for programs and the database.
func TestTimeToDrain(t *testing.T) {
	t.Parallel()
	const beyond = 5*time.Second + 5*time.Second + 5*time.Second // the grace is the default of manager.Config.Grace
	fallback := center.Settings{}.WithDefaults().DrainTimeout
	for _, c := range []struct {
		values string
		drain  time.Duration
	}{
		{"", fallback},
		{"drainTimeout: 2m", 2 * time.Minute},
		{"drainTimeout: 1h1.5s", time.Hour + 2*time.Second},
		{"drainTimeout: 10s", 10 * time.Second},
		{config("a: {}"), fallback},
		{config("a:"), fallback},
		{config("a: {drain_timeout: 1m30s}, b: {drain_timeout: 500ms}"), 90 * time.Second},
		{config("a: {drain_timeout: 10s}, b: {}"), fallback},
		{config("a: {drain_timeout: 10s}"), 10 * time.Second},
		{config("a: {drain_timeout: 1m}") + "\ndrainTimeout: 5m", 5 * time.Minute},
		{config("a: {drain_timeout: 1m}") + "\ndrainTimeout: 10s", time.Minute},
	} {
		got := *pods(objectsOf(t, required, c.values))["shop"].Spec.TerminationGracePeriodSeconds
		if want := int64((c.drain + beyond).Seconds()); got != want {
			t.Errorf("%s: a pod has %d s to end, want %d", c.values, got, want)
		}
	}
}

func config(tasks string) string {
	return fmt.Sprintf("existingConfigMap: ''\nconfig: %q", "tasks: {"+tasks+"}")
}

// The comments of values.yaml name no file that is not there.
func TestValuesNameFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`docs/\w+\.md`).FindAllString(string(text), -1)
	for _, name := range names {
		if _, err := os.Stat("../../" + name); err != nil {
			t.Error(err)
		}
	}
	if len(names) == 0 {
		t.Error("values.yaml names no page")
	}
}
