package anydb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center/anydb"
)

// fuzzPassword stands in the seeds where a password stands.
const fuzzPassword = "s3cr3tpw"

// A URL is understood, or refused in one line. A password that was understood as one is never shown.
func FuzzURL(f *testing.F) {
	for _, raw := range []string{
		"postgres://a:s3cr3tpw@h/d?host=/tmp", "mysql://a:s3cr3tpw@h:1/d?tls=x&socket=/x", "sqlite:x", "sqlite::memory:", "sqlite:a?b=c", "postgres:", "mysql:///d",
		"mysql://u@[::1]:3306/d?charset=gbk", "postgres://localhost:5432/a?hostaddr=1.2.3.4&port=1,2", "postgres://u@h1,h2:1,2/d", "oracle://a:s3cr3tpw@h/d",
		"postgres://a:s3cr3tpw@h:port/d", "%", "mysql://a:s3cr3tpw@h/d?loc=Local&timeout=1h", "A#://a:s3cr3tpw@h/", "",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		d := anydb.URL(raw)
		if d.Err == nil && (d.Dialect == nil || d.Connector == nil) {
			t.Errorf("%q is neither understood nor refused", raw)
		}
		shown := d.Address
		if d.Err != nil {
			shown = d.Err.Error()
			if strings.Contains(shown, "\n") {
				t.Errorf("more than a line: %s", shown)
			}
		}
		scheme, _, _ := strings.Cut(raw, "://a:"+fuzzPassword+"@h/")
		understood := slices.Contains([]string{"postgres", "postgresql", "mysql", "mariadb", "oracle", "A#"}, scheme) && strings.Count(raw, fuzzPassword) == 1
		if understood && strings.Contains(shown, fuzzPassword) {
			t.Errorf("%q shows the password: %s", raw, shown)
		}
	})
}
