package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const chartDir = "../chart"

// required are the values that have no default.
const required = `
image: {repository: registry.example.com/rota}
existingConfigMap: shop
database: {existingSecret: shop-database}
`

// everything turns all on, and sets what needs a value.
const everything = `
fullnameOverride: shop
image: {repository: registry.example.com/rota, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: IfNotPresent}
imagePullSecrets: [{name: registry}]
serviceAccountName: shop
config: "tasks: {settle: {drain_timeout: 1m30s}, count: {}}"
database: {url: "postgres://app:secret@db/shop", key: url}
caCertificates: {secret: authority}
extraEnv: [{name: TZ, value: Europe/Berlin}]
extraVolumes: [{name: programs, emptyDir: {}}]
extraVolumeMounts: [{name: programs, mountPath: /programs}]
worker:
  extraArgs: [--own-sign, TEST]
  podLabels: {team: shop}
  podAnnotations: {example.com/owner: shop}
  nodeSelector: {disk: ssd}
  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}}
  tolerations: [{key: batch, operator: Exists}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
  priorityClassName: batch
  service: {enabled: true}
  podDisruptionBudget: {maxUnavailable: 25%}
autoscaling:
  enabled: true
  backlogs: [{metric: rota_queue_backlog_items, matchLabels: {task_type: settle}, perWorker: 2000000}]
console:
  enabled: true
  allowChanges: true
  extraArgs: [--own-sign, TEST]
  podLabels: {team: shop}
  podAnnotations: {example.com/owner: shop}
  nodeSelector: {disk: ssd}
  affinity: {podAntiAffinity: {}}
  tolerations: [{key: batch, operator: Exists}]
  priorityClassName: batch
  oidc:
    issuerURL: https://id.example.com
    redirectURL: https://rota.example.com/oauth2/callback
    emailDomains: [example.com]
    existingSecret: oidc
    extraArgs: [--skip-provider-button]
networkPolicy:
  enabled: true
  workerFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  consoleFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]
  egress: [{ports: [{port: 5432}, {port: 53, protocol: UDP}]}]
podMonitor: {enabled: true, labels: {release: prometheus}, interval: 15s}
`

// sets are the values with which the chart is checked: each changes what stands above it in its own way.
var sets = map[string][]string{
	"required":           {required},
	"everything":         {everything},
	"without sidecar":    {required, "witness: {enabled: false}"},
	"without migration":  {required, "migrate: {enabled: false}"},
	"without apply":      {required, "migrate: {applySettings: false}"},
	"without budget":     {required, "worker: {podDisruptionBudget: {enabled: false}}"},
	"own autoscaler":     {required, "worker: {replicas: null, service: {enabled: true}}\nnetworkPolicy: {workerFrom: [{podSelector: {}}]}"},
	"none":               {required, "worker: {replicas: 0}"},
	"owner of tables":    {required, "migrate: {existingSecret: owner, key: url}"},
	"owner beside a URL": {everything, "migrate: {existingSecret: owner, key: url}"},
	"map of authorities": {required, "caCertificates: {configMap: authority}"},
	"forwarded console":  {required, "console: {enabled: true}"},
	"without policies":   {required, "networkPolicy: {enabled: false}\nworker: {service: {enabled: true}}"},
	"tagged proxy":       {everything, "image: {digest: '', tag: '1'}\nconsole: {oidc: {image: {digest: 'sha256:" + strings.Repeat("a", 64) + "', pullPolicy: Always}}}"},
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func valuesOf(t *testing.T, texts ...string) (values map[string]any) {
	t.Helper()
	for _, text := range texts {
		more, err := loader.LoadValues(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		values = loader.MergeMaps(values, more)
	}
	return values
}

// render does what `helm template shop` does.
func render(t *testing.T, texts ...string) (map[string]string, error) {
	t.Helper()
	return renderAs(t, "shop", texts...)
}

// renderAs renders a release of that name. The chart is loaded anew, because values change it.
func renderAs(t *testing.T, name string, texts ...string) (map[string]string, error) {
	t.Helper()
	c := load(t)
	release := common.ReleaseOptions{Name: name, Namespace: "work", IsInstall: true, Revision: 1}
	values, err := chartutil.ToRenderValues(c, valuesOf(t, texts...), release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, values)
}

// objects are those of one rendering, strictly decoded.
type objects []runtime.Object

// scheme has the types that the chart may have.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apps.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme,
		monitoring.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func decode(t *testing.T, files map[string]string) (all objects, err error) {
	t.Helper()
	s := scheme(t)
	decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, s, s, serializer.SerializerOptions{Yaml: true, Strict: true})
	for name, text := range files {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(string(document)) == "" {
				continue
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			all = append(all, object)
		}
	}
	return all, nil
}

// objectsOf renders and decodes.
func objectsOf(t *testing.T, texts ...string) objects {
	t.Helper()
	files, err := render(t, texts...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := decode(t, files)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// of returns the objects of one type.
func of[T any](all objects) (list []*T) {
	for _, o := range all {
		if o, ok := o.(any).(*T); ok {
			list = append(list, o)
		}
	}
	return list
}

// named returns the object of a type and a name.
func named[T any](t *testing.T, all objects, name string) *T {
	t.Helper()
	for _, o := range of[T](all) {
		if any(o).(meta.Object).GetName() == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", reflect.TypeFor[T]().Name(), name)
	return nil
}

// helm lint finds nothing.
func TestLint(t *testing.T) {
	t.Parallel()
	all := maps.Clone(sets)
	all["nothing"] = nil
	for name, texts := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, m := range lint.RunAll(chartDir, valuesOf(t, texts...), "work").Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
		})
	}
}

// Each set of values has the objects that it asks for, and no others.
func TestObjects(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"required": "Deployment/shop Job/shop-migrate NetworkPolicy/shop PodDisruptionBudget/shop",
		"everything": "ConfigMap/shop ConfigMap/shop-migrate Deployment/shop Deployment/shop-console HorizontalPodAutoscaler/shop " +
			"Job/shop-migrate NetworkPolicy/shop NetworkPolicy/shop-console PodDisruptionBudget/shop PodMonitor/shop " +
			"Secret/shop-database Secret/shop-migrate Service/shop Service/shop-console",
		"without migration":  "Deployment/shop NetworkPolicy/shop PodDisruptionBudget/shop",
		"without budget":     "Deployment/shop Job/shop-migrate NetworkPolicy/shop",
		"own autoscaler":     "Deployment/shop Job/shop-migrate NetworkPolicy/shop PodDisruptionBudget/shop Service/shop",
		"without policies":   "Deployment/shop Job/shop-migrate PodDisruptionBudget/shop Service/shop",
		"forwarded console":  "Deployment/shop Deployment/shop-console Job/shop-migrate NetworkPolicy/shop NetworkPolicy/shop-console PodDisruptionBudget/shop",
		"owner beside a URL": "",
	}
	for name, texts := range sets {
		var got []string
		for _, o := range objectsOf(t, texts...) {
			got = append(got, o.GetObjectKind().GroupVersionKind().Kind+"/"+o.(meta.Object).GetName())
		}
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%s: two objects have one name: %v", name, got)
		}
		if w := want[name]; w != "" && strings.Join(got, " ") != w {
			t.Errorf("%s: got %v, want %s", name, got, w)
		}
	}
}

// All objects have names that Kubernetes takes, also for a release whose own name is long or has dots.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"shop", "shop.eu", strings.Repeat("a", 49) + ".eu"} {
		files, err := renderAs(t, release, everything, "fullnameOverride: ''")
		if err != nil {
			t.Fatal(err)
		}
		all, err := decode(t, files)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			name := o.(meta.Object).GetName()
			if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
				t.Errorf("the release %s has a %T %s: %v", release, o, name, problems)
			}
		}
	}
}

// A chart is packed twice into the same bytes, with the version of the release.
func TestPack(t *testing.T) {
	t.Parallel()
	r := release{version: "v1.2.3", license: "../../LICENSE", time: meta.Unix(1764230000, 0).Time}
	var sums [2]string
	for i := range sums {
		file, err := r.pack(chartDir, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(text)
		c, err := loader.Load(file)
		if err != nil || path.Base(file) != "rota-1.2.3.tgz" || c.Metadata.Version != "1.2.3" || c.AppVersion() != "1.2.3" {
			t.Errorf("%s has %+v (%v)", file, c.Metadata, err)
		}
		for _, f := range c.Raw {
			if !f.ModTime.Equal(r.time) {
				t.Errorf("%s has the time %s, want that of the commit", f.Name, f.ModTime)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Error("two archives of one commit differ")
	}
}
