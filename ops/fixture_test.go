package ops_test

import (
	"testing"

	"github.com/dutyrota/rota/center/centertest"
)

// The servers of centertest.Served and seedRoster.
const web1, web2 = centertest.Web1, centertest.Web2

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
