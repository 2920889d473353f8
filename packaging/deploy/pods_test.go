package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	security "k8s.io/pod-security-admission/api"
	securitypolicy "k8s.io/pod-security-admission/policy"
)

// pods returns the pod templates by the names of their objects.
func pods(all objects) map[string]*core.PodTemplateSpec {
	m := map[string]*core.PodTemplateSpec{}
	for _, d := range of[apps.Deployment](all) {
		m[d.Name] = &d.Spec.Template
	}
	for _, j := range of[batch.Job](all) {
		m[j.Name] = &j.Spec.Template
	}
	return m
}

func containers(pod *core.PodTemplateSpec) []core.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// The pods hold under the Pod Security Standard "restricted". They also have what it does not ask for: no token, a
// file system that they cannot write to, and requests and limits of memory.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := securitypolicy.NewEvaluator(securitypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
	for name, texts := range sets {
		for object, pod := range pods(objectsOf(t, texts...)) {
			results := evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)
			if r := securitypolicy.AggregateCheckResults(results); !r.Allowed || len(results) == 0 {
				t.Errorf("%s: the pods of %s are forbidden: %s", name, object, r.ForbiddenDetail())
			}
			if s := pod.Spec.SecurityContext; s == nil || s.FSGroup == nil {
				t.Errorf("%s: the pods of %s cannot read the secret, whose file is for its group alone", name, object)
			}
			if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: the pods of %s get a token", name, object)
			}
			for _, c := range containers(pod) {
				s := c.SecurityContext
				if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: the container %s of %s may write, or has no limit: %+v", name, c.Name, object, c)
				}
			}
		}
	}
}

// What an object names is there.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, texts := range sets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := objectsOf(t, texts...)
			all.wantVolumes(t)
			all.wantSelected(t)
			for _, hpa := range of[autoscaling.HorizontalPodAutoscaler](all) {
				target := hpa.Spec.ScaleTargetRef
				d := named[apps.Deployment](t, all, target.Name)
				if target.Kind != d.Kind || target.APIVersion != d.APIVersion || d.Spec.Replicas != nil {
					t.Errorf("the autoscaler scales %+v, which has %v replicas of its own", target, d.Spec.Replicas)
				}
			}
		})
	}
}

// outside are the objects that the sets of values name and the chart does not have: their keys.
var outside = map[string][]string{
	"ConfigMap/shop":       {"rota.yaml"},
	"Secret/shop-database": {"database"},
	"Secret/owner":         {"url"},
	"Secret/oidc":          {"client-secret", "cookie-secret"},
	"Secret/authority":     {"ca.crt"},
	"ConfigMap/authority":  {"ca.crt"},
}

// keysFor returns the keys of ConfigMaps and Secrets that a pod finds when it starts: hooks run before all else.
func (all objects) keysFor(hook bool) map[string][]string {
	keys := maps.Clone(outside)
	for _, m := range of[core.ConfigMap](all) {
		if (m.Annotations["helm.sh/hook"] != "") == hook {
			keys["ConfigMap/"+m.Name] = slices.Collect(maps.Keys(m.Data))
		} else {
			delete(keys, "ConfigMap/"+m.Name)
		}
	}
	for _, s := range of[core.Secret](all) {
		if (s.Annotations["helm.sh/hook"] != "") == hook {
			keys["Secret/"+s.Name] = slices.Collect(maps.Keys(s.StringData))
		} else {
			delete(keys, "Secret/"+s.Name)
		}
	}
	return keys
}

// Hooks start in the order of their weights: first what the Job mounts, then the Job.
func TestMigrationStartsLast(t *testing.T) {
	t.Parallel()
	weight := func(o meta.Object) int {
		w, err := strconv.Atoi(o.GetAnnotations()["helm.sh/hook-weight"])
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	all := objectsOf(t, everything)
	job := weight(named[batch.Job](t, all, "shop-migrate"))
	for _, o := range []meta.Object{
		named[core.ConfigMap](t, all, "shop-migrate"), named[core.Secret](t, all, "shop-migrate"),
	} {
		if w := weight(o); w >= job {
			t.Errorf("%T %s has the weight %d, and the Job that mounts it %d", o, o.GetName(), w, job)
		}
	}
}

// Workers are replaced one after the other: an old one goes when its successor is ready.
func TestWorkersAreReplacedOneByOne(t *testing.T) {
	t.Parallel()
	s := named[apps.Deployment](t, objectsOf(t, required), "shop").Spec.Strategy.RollingUpdate
	if s == nil || s.MaxUnavailable == nil || s.MaxSurge == nil || s.MaxUnavailable.String() != "0" || s.MaxSurge.String() != "1" {
		t.Errorf("got %+v, want one more worker and none less", s)
	}
}

// wantVolumes checks that mounts have volumes, and volumes and variables have the ConfigMaps and Secrets with their keys.
func (all objects) wantVolumes(t *testing.T) {
	t.Helper()
	hooks := map[string]bool{}
	for _, j := range of[batch.Job](all) {
		hooks[j.Name] = j.Annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
		if !hooks[j.Name] {
			t.Errorf("%s is no hook: the workers would not wait for it", j.Name)
		}
	}
	for object, pod := range pods(all) {
		keys := all.keysFor(hooks[object])
		want := func(source string, named ...string) {
			for _, key := range named {
				if !slices.Contains(keys[source], key) {
					t.Errorf("the pods of %s need %s of %s, which has %v when they start", object, key, source, keys[source])
				}
			}
		}
		volumes := map[string]bool{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = true
			switch {
			case v.ConfigMap != nil && v.Name == "config":
				want("ConfigMap/"+v.ConfigMap.Name, "rota.yaml")
			case v.ConfigMap != nil:
				want("ConfigMap/"+v.ConfigMap.Name, "ca.crt")
			case v.Secret != nil && v.Name == "database":
				if len(v.Secret.Items) != 1 || v.Secret.Items[0].Path != "database" || *v.Secret.DefaultMode != 0o440 {
					t.Errorf("%+v, want the file database, for its group alone", v.Secret)
				}
				want("Secret/"+v.Secret.SecretName, v.Secret.Items[0].Key)
			case v.Secret != nil:
				want("Secret/"+v.Secret.SecretName, "ca.crt")
			}
		}
		for _, c := range containers(pod) {
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s/%s mounts %s, which is no volume", object, c.Name, m.Name)
				}
			}
			for _, e := range c.Env {
				if e.ValueFrom != nil {
					want("Secret/"+e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
				}
				if e.Name == "SSL_CERT_DIR" && !slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == e.Value }) {
					t.Errorf("%s/%s has no %s", object, c.Name, e.Value)
				}
			}
		}
	}
}

// wantSelected checks that selectors select the pods of one Deployment, and that ports and probes have their ports.
func (all objects) wantSelected(t *testing.T) {
	t.Helper()
	deployments := of[apps.Deployment](all)
	// selected returns the only Deployment whose pods have these labels.
	selected := func(what string, selector *meta.LabelSelector) *core.PodTemplateSpec {
		t.Helper()
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		var found []*core.PodTemplateSpec
		for _, d := range deployments {
			if s.Matches(labels.Set(d.Spec.Template.Labels)) {
				found = append(found, &d.Spec.Template)
			}
		}
		for _, j := range of[batch.Job](all) {
			if s.Matches(labels.Set(j.Spec.Template.Labels)) {
				t.Errorf("%s selects the pods of %s, too", what, j.Name)
			}
		}
		if len(found) != 1 || s.Empty() {
			t.Fatalf("%s selects the pods of %d Deployments by %v, want 1", what, len(found), s)
		}
		return found[0]
	}
	port := func(what string, pod *core.PodTemplateSpec, name string) {
		t.Helper()
		n := 0
		for _, c := range containers(pod) {
			for _, p := range c.Ports {
				if p.Name == name {
					n++
				}
			}
		}
		if n != 1 {
			t.Errorf("%s needs a port %q, which %d containers have", what, name, n)
		}
	}
	for _, d := range deployments {
		pod := selected("Deployment "+d.Name, d.Spec.Selector)
		if pod != &d.Spec.Template {
			t.Errorf("Deployment %s selects the pods of another one", d.Name)
		}
		if _, ok := d.Spec.Selector.MatchLabels["app.kubernetes.io/version"]; ok {
			t.Errorf("Deployment %s selects by the version: an upgrade could not change that", d.Name)
		}
		for _, c := range pod.Spec.TopologySpreadConstraints {
			if selected("the spread of "+d.Name, c.LabelSelector) != pod {
				t.Errorf("Deployment %s spreads other pods", d.Name)
			}
		}
		for _, c := range pod.Spec.Containers {
			for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe} {
				if p != nil {
					port("a probe of "+c.Name, pod, p.HTTPGet.Port.String())
				}
			}
		}
	}
	for _, s := range of[core.Service](all) {
		pod := selected("Service "+s.Name, &meta.LabelSelector{MatchLabels: s.Spec.Selector})
		for _, p := range s.Spec.Ports {
			port("Service "+s.Name, pod, p.TargetPort.String())
		}
	}
	for _, b := range of[policy.PodDisruptionBudget](all) {
		selected("PodDisruptionBudget "+b.Name, b.Spec.Selector)
	}
	for _, m := range of[monitoring.PodMonitor](all) {
		pod := selected("PodMonitor "+m.Name, &m.Spec.Selector)
		for _, e := range m.Spec.PodMetricsEndpoints {
			port("PodMonitor "+m.Name, pod, *e.Port)
		}
	}
	for _, p := range of[networking.NetworkPolicy](all) {
		pod := selected("NetworkPolicy "+p.Name, &p.Spec.PodSelector)
		if !slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeIngress) ||
			slices.Contains(p.Spec.PolicyTypes, networking.PolicyTypeEgress) != (len(p.Spec.Egress) > 0) {
			t.Errorf("NetworkPolicy %s is about %v", p.Name, p.Spec.PolicyTypes)
		}
		for _, rule := range p.Spec.Ingress {
			if len(rule.From) == 0 {
				t.Errorf("NetworkPolicy %s admits everybody", p.Name)
			}
			for _, allowed := range rule.Ports {
				port("NetworkPolicy "+p.Name, pod, allowed.Port.String())
			}
		}
	}
}

// Values reach the objects that they are about.
func TestValuesReachObjects(t *testing.T) {
	t.Parallel()
	all := objectsOf(t, everything)
	worker, console := pods(all)["shop"], pods(all)["shop-console"]
	for object, pod := range pods(all) {
		s := pod.Spec
		if s.ServiceAccountName != "shop" || len(s.ImagePullSecrets) != 1 || s.PriorityClassName != "batch" || s.NodeSelector["disk"] != "ssd" ||
			s.Affinity == nil || len(s.Tolerations) != 1 {
			t.Errorf("%s has %+v", object, s)
		}
		for _, c := range containers(pod) {
			if c.Name == "oauth2-proxy" {
				continue
			}
			if !strings.HasPrefix(c.Image, "registry.example.com/rota@sha256:0123") || c.ImagePullPolicy != core.PullIfNotPresent ||
				!slices.Contains(c.Env, core.EnvVar{Name: "TZ", Value: "Europe/Berlin"}) ||
				!slices.Contains(c.Env, core.EnvVar{Name: "SSL_CERT_DIR", Value: "/etc/rota-ca"}) ||
				!slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/programs" }) {
				t.Errorf("%s/%s is %+v", object, c.Name, c)
			}
		}
	}
	for _, pod := range []*core.PodTemplateSpec{worker, console} {
		if pod.Labels["team"] != "shop" || pod.Annotations["example.com/owner"] != "shop" {
			t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
		}
	}
	if image := pods(objectsOf(t, sets["tagged proxy"]...))["shop"].Spec.Containers[0].Image; image != "registry.example.com/rota:1" {
		t.Errorf("the image is %s", image)
	}
	if image := pods(objectsOf(t, required))["shop"].Spec.Containers[0].Image; image != "registry.example.com/rota:"+load(t).AppVersion() {
		t.Errorf("the image is %s, want the version of the chart's program", image)
	}
	hpa := named[autoscaling.HorizontalPodAutoscaler](t, all, "shop").Spec
	if m := hpa.Metrics[0].External; *hpa.MinReplicas != 1 || m.Metric.Selector.MatchLabels["task_type"] != "settle" || m.Target.AverageValue.Value() != 2_000_000 {
		t.Errorf("%+v", hpa)
	}
	for set, want := range map[string]*int32{"required": new(int32(3)), "none": new(int32(0)), "own autoscaler": nil} {
		if got := named[apps.Deployment](t, objectsOf(t, sets[set]...), "shop").Spec.Replicas; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %v replicas, want %v", set, got, want)
		}
	}
	// Nobody may connect where no peer is named.
	for _, p := range of[networking.NetworkPolicy](objectsOf(t, sets["forwarded console"]...)) {
		if len(p.Spec.Ingress) > 0 {
			t.Errorf("NetworkPolicy %s admits %v", p.Name, p.Spec.Ingress)
		}
	}
}

// Pods are replaced when the text of rota.yaml or the URL changes, and only then.
func TestChecksum(t *testing.T) {
	t.Parallel()
	sum := func(texts ...string) string {
		return pods(objectsOf(t, texts...))["shop"].Annotations["checksum/config"]
	}
	first := sum(everything)
	for _, change := range []string{"config: 'tasks: {}'", "database: {url: 'postgres://app@db2/shop'}"} {
		if sum(everything, change) == first {
			t.Errorf("%s changes nothing of the pods", change)
		}
	}
	if sum(everything, "autoscaling: {maxReplicas: 9}") != first {
		t.Error("another number of workers replaces the pods")
	}
}
