package sqldb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/sqldb"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]*sqldb.URL{
		"pg://":      {Scheme: "pg"},
		"PG://u@h/d": {Scheme: "pg", User: "u", Database: "d", Hosts: []sqldb.Host{{Name: "h"}}},
		"pg://u:p%23%25%2f%3F%40@h:1/d%2Fe?a=b%20c&a=d": {Scheme: "pg", User: "u", Password: "p#%/?@", Database: "d/e", Hosts: []sqldb.Host{{Name: "h", Port: "1"}}, Query: map[string][]string{"a": {"b c", "d"}}},
		"pg://u:p@q@h1,h2:2,[::1]:3,[::2]":              {Scheme: "pg", User: "u", Password: "p@q", Hosts: []sqldb.Host{{Name: "h1"}, {Name: "h2", Port: "2"}, {Name: "::1", Port: "3"}, {Name: "::2"}}},
		"pg:///d?host=/run":                             {Scheme: "pg", Database: "d", Query: map[string][]string{"host": {"/run"}}},
	} {
		got, err := sqldb.ParseURL(raw, "pg://...", "pg")
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if len(got.Query) == 0 {
			got.Query = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// Whatever is wrong with a URL, and wherever the password stands in it, neither the error nor the address prints it.
func TestPasswordsAreNeverPrinted(t *testing.T) {
	const secret = "s3cr3t"
	forms := []string{
		"pg://u:%s@h/d", "pg://u:%s@h:x/d", "pg:u:%s@h/d", "pg:%s", "u:%s@h/d", "u:%s@tcp(h:1)/d", "%s", "oracle://u:%s@h/d",
		"host=h password=%s", "password = '%s' host=h", "pg://h/d?password=%s", "pg://h/d?passwd=%s", "pg://h/d?%s", "pg://h/d?%s@x",
		"pg://u:a#%s@h/d", "pg://u:%%%s@h/d", "pg://u:/%s@h/d", "pg://u:1/%s@h/d", "pg://u:1?x=%s@h/d", "pg://u:1?%s=x@h/d", "pg://u:a?%s@h/d",
		"pg://u:\n%s@h/d", "pg://u:[%s@h/d", "pg:/u:%s@h/d", " pg://u:%s@h/d", "pg//u:%s@h/d", "pg://u:a %s@h/d", "jdbc:pg://h/d?password=%s",
		"pg://h/d?x=%s;y", "pg://h/d?x=%%%s",
	}
	rapid.Check(t, func(t *rapid.T) {
		junk := rapid.StringOfN(rapid.RuneFrom([]rune("ab1:/?#@%&=;,[]\\' \n.")), 0, 3, -1)
		form := rapid.SampledFrom(forms).Draw(t, "form")
		raw := strings.ReplaceAll(form, "%%", "%")
		raw = strings.Replace(raw, "%s", junk.Draw(t, "before")+secret+junk.Draw(t, "behind"), 1)
		u, err := sqldb.ParseURL(raw, "pg://...", "pg")
		var text string
		switch {
		case err != nil:
			text = err.Error()
		default:
			_, err = sqldb.Params{}.Check(u.Query)
			if text = u.Address(); err != nil {
				text += err.Error()
			}
		}
		// Behind the @ of a password stands the host: only what precedes it can be told from a host.
		if strings.Contains(text, secret) && u != nil && !printable(u, secret) {
			t.Fatalf("%q: %s", raw, text)
		}
		if u == nil && strings.Contains(text, secret) || strings.Contains(text, "\n") {
			t.Fatalf("%q: %s", raw, text)
		}
	})
}

// printable reports whether a text is in a part of the URL that is no password.
func printable(u *sqldb.URL, text string) bool {
	shown := u.User + u.Database
	for _, h := range u.Hosts {
		shown += h.Name
	}
	for name := range u.Query {
		shown += name
	}
	return strings.Contains(shown, text)
}

func TestPasswordsThatNeedAnEscape(t *testing.T) {
	for raw, want := range map[string]string{
		"pg://u:a#b@h/d":  "write %23 instead of #",
		"pg://u:a%b@h/d":  "write %25 instead of %",
		"pg://u:100%@h/d": "write %25 instead of %",
		"pg://u:a/b@h/d":  "write %2F instead of /",
		"pg://u:a?b@h/d":  "%3F instead of ?",
		"pg://u:a b@h/d":  "write %20 for a space",
		"pg://u:a[b@h/d":  "write any other character as %XX",
	} {
		if _, err := sqldb.ParseURL(raw, "pg://...", "pg"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}
