package center_test

import "testing"

// The servers of the tests.
const web1, web2 = "web1:1:00000001", "web2:2:00000002"

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
