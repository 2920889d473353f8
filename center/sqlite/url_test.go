package sqlite

import "testing"

func TestParametersAreRefused(t *testing.T) {
	const want = "database URL: want sqlite:FILE without parameters: the roster sets those that it needs, and any other " +
		"could change what its statements mean"
	for _, raw := range []string{
		"sqlite:f.db?cache=shared", "sqlite:///f.db?_pragma=foreign_keys(1)", "sqlite:f.db?_txlock=immediate",
		"sqlite:f.db?password=secret", "sqlite::memory:?cache=shared",
	} {
		if err := URL(raw).Err; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", raw, err, want)
		}
	}
	if d := URL("sqlite:/what?.db"); d.Err != nil || d.Address != "sqlite:/what?.db" {
		t.Errorf("a question mark in a name: %s, %v", d.Address, d.Err)
	}
}
