package config

import (
	"strings"
	"testing"
)

// The secret of a service comes from a file or from the environment, and no error prints it.
func TestServiceSecret(t *testing.T) {
	t.Setenv("BILLING_SECRET", "from the environment\n") // as a secret of Kubernetes that was made of a file
	t.Setenv("TWO_LINES", "a\nb")
	file := write(t, "from a file\n")
	for name, c := range map[string]struct {
		service      Service
		want, failed string
	}{
		"none":                    {},
		"file":                    {service: Service{SecretFile: file}, want: "from a file"},
		"variable":                {service: Service{SecretVariable: "BILLING_SECRET"}, want: "from the environment"},
		"no file":                 {service: Service{SecretFile: "absent"}, failed: ".secret_file (absent): no such file or directory"},
		"two lines":               {service: Service{SecretFile: write(t, "a\nb")}, failed: "must hold one line: the secret"},
		"two lines in a variable": {service: Service{SecretVariable: "TWO_LINES"}, failed: ".secret_variable (TWO_LINES): must hold one line: the secret"},
		"no variable":             {service: Service{SecretVariable: "NO_SUCH"}, failed: ".secret_variable (NO_SUCH): the environment has no such variable"},
	} {
		got, err := c.service.Secret()
		if got != c.want || (err == nil) != (c.failed == "") || err != nil && !strings.HasSuffix(err.Error(), c.failed) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
