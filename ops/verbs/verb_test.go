package verbs_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dutyrota/rota/ops/verbs"
)

// Each verb has what its command and its form need, and each name stands for one verb.
func TestVerbs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, v := range verbs.All() {
		if seen[v.Name] || verbs.Find(v.Name) != v {
			t.Errorf("%s is not the only verb of its name", v.Name)
		}
		seen[v.Name] = true
		if v.Short == "" || v.Example == "" || v.Right != verbs.RightOperate && v.Right != verbs.RightChange {
			t.Errorf("%s lacks a text or its right: %+v", v.Name, v)
		}
		if v.NoPage == "" && (len(v.Args) == 0 || !v.Args[0].Required()) {
			t.Errorf("%s names nothing that it changes", v.Name)
		}
		flags := false
		for _, a := range v.Args {
			if flags = flags || a.Place == ""; flags && a.Place != "" {
				t.Errorf("%s: %s stands behind a flag", v.Name, a.Name)
			}
		}
	}
	if verbs.Find("worker paint") != nil {
		t.Error("there is a verb that nobody has defined")
	}
}

// A call takes its arguments as texts, and refuses those of another kind with their name, value and rule.
func TestCallArguments(t *testing.T) {
	t.Parallel()
	call := verbs.Find("worker drain").Call()
	args := map[string]verbs.Arg{}
	for _, a := range call.Verb.Args {
		args[a.Name] = a
	}
	if got := call.Values(args["wait"]); !reflect.DeepEqual(got, []string{"30s"}) {
		t.Errorf("the default of wait is %v", got)
	}
	for _, test := range []struct {
		name, value string
		want        string
	}{
		{"wait", "soon", "wait (soon) must be a duration, such as 90s, 10m or 24h"},
		{"force", "perhaps", "force (perhaps) must be true or false"},
		{"wait", "1m", ""},
		{"force", "true", ""},
	} {
		err := call.Set(args[test.name], test.value)
		if got := text(err); got != test.want {
			t.Errorf("%s=%s: %q, want %q", test.name, test.value, got, test.want)
		}
	}
	if err := call.Set(args["worker"], "web1", "web2"); err != nil {
		t.Error(err)
	}
	if got := strings.Join(call.Values(args["worker"]), " "); got != "web1 web2" {
		t.Errorf("the workers are %q", got)
	}
}

// A call without what it changes is refused before the database is asked.
func TestCallWithoutObject(t *testing.T) {
	t.Parallel()
	for _, v := range verbs.All() {
		if len(v.Args) == 0 {
			continue // it is about the whole roster
		}
		if change, err := v.Call().Prepare(t.Context(), nil); change != nil && change.Objects != nil || !errors.Is(err, verbs.ErrMissing) {
			t.Errorf("%s without arguments: %v, %v", v.Name, change, err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
