//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	allow  = "#!/bin/sh\nexit 0\n"
	forbid = "#!/bin/sh\nexit 101\n"
)

func TestForbidServices(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, aside string // what the files contain, if they exist
		after         string
	}{
		{"no policy", "", "", ""},
		{"a policy", allow, "", allow},
		{"left by a killed run", forbid, allow, allow},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := filepath.Join(t.TempDir(), "policy-rc.d")
			put(t, policy, test.before)
			put(t, policy+".rota", test.aside)
			restore, err := forbidServices(policy)
			if err != nil {
				t.Fatal(err)
			}
			if got := get(t, policy); got != forbid {
				t.Errorf("the policy meanwhile is %q", got)
			}
			if err := restore(); err != nil {
				t.Fatal(err)
			}
			if got := get(t, policy) + get(t, policy+".rota"); got != test.after {
				t.Errorf("the policy afterwards is %q, want %q", got, test.after)
			}
		})
	}
}

// put writes the file unless the content is empty.
func put(t *testing.T, file, content string) {
	t.Helper()
	if content == "" {
		return
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// get reads the file. It returns "" if the file does not exist.
func get(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}
