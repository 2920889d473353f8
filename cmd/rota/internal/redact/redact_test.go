package redact

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// The secrets of all URLs are taken out of a text, and the rest of it stays.
func TestURLs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                      "",
		"no URL: user:password@host?key=value":  "no URL: user:password@host?key=value",
		"postgres://app@db/shop":                "postgres://app@db/shop",
		"postgres://app:p@db:5432/shop":         "postgres://app:***@db:5432/shop",
		"mysql://app:p@ss@db/shop":              "mysql://app:***@db/shop",
		"mysql://app:p/ss@db/shop":              "mysql://app:***@db/shop",
		"postgres://app:p@db/shop?sslmode=off":  "postgres://app:***@db/shop?sslmode=***",
		`Post "https://h/a?k=v&token=t": EOF`:   `Post "https://h/a?k=***&token=***": EOF`,
		"https://token@h/a, https://u:p@h/b":    "https://***@h/a, https://***@h/b",
		"HTTPS://u:p@h":                         "HTTPS://***@h",
		"see https://h/docs/a@b for more":       "see https://h/docs/a@b for more",
		"cut in postgres://app:pass":            "cut in postgres://app:pass", // without a host there is no telling
		"sqlite:shop.db, https://h:8080/x?a#b=": "sqlite:shop.db, https://h:8080/x?a#b=***",
	} {
		if got := URLs(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if again := URLs(URLs(in)); again != URLs(in) {
			t.Errorf("%s is redacted a second time: %s", URLs(in), again)
		}
	}
}

// No configured secret is in any text, in none of the forms that it takes on its way.
func TestSecrets(t *testing.T) {
	t.Parallel()
	var r Redactor
	r.Add(`se"cret & more`)
	r.Add("short")
	r.AddDatabase("postgres://app:database-p%40ss@db/shop?sslmode=verify-full&sslpassword=key-pass")
	r.AddService("https://hooks.example.com/services/T0/abcdefghijklmnop%3D1?sig=query-token")
	r.AddService("https://user-token@h/")
	r.AddService("https://h/tasks/notify-all-customers?task=settle", "settle", "notify-all-customers")
	for _, secret := range []string{
		`se"cret & more`, `se\"cret & more`, "se%22cret+%26+more", "se%22cret%20&%20more", "database-p@ss", "database-p%40ss", "key-pass",
		"abcdefghijklmnop=1", "abcdefghijklmnop%3D1", "query-token", "user-token",
	} {
		for _, text := range []string{secret, "a" + secret + "b", "https://other/" + secret + "?a=" + secret} {
			if got := r.Text(text); strings.Contains(got, secret) || !strings.Contains(got, mask) {
				t.Errorf("%s stays in %s", secret, got)
			}
		}
	}
	for _, text := range []string{"short", "verify-full", "services", "hooks.example.com", "T0", "task notify-all-customers", "task settle"} {
		if got := r.Text(text); got != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

// A redacted error is still the error that it was.
func TestError(t *testing.T) {
	t.Parallel()
	var r Redactor
	r.Add("secret-token")
	cause := errors.New("secret-token is refused")
	err := r.Error(fmt.Errorf("call: %w", cause))
	if err.Error() != "call: *** is refused" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if r.Error(nil) != nil || r.Error(errors.ErrUnsupported) != errors.ErrUnsupported { //nolint:errorlint // the error itself
		t.Error("an error without a secret is another one")
	}
}
