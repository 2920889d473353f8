package center_test

import (
	"context"
	"os"
	"testing"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// The suite passes on one node of a Galera cluster, and while each session may be on another node.
func TestConformanceOnGalera(t *testing.T) {
	if os.Getenv("ROTA_FAULTS") != "all" {
		t.Skip("takes minutes: make engine-galera runs it")
	}
	nodes := testdb.Galera(t)
	t.Run("node", func(t *testing.T) { centertest.Run(t, nodes[0].URL()) })
	t.Run("nodes", func(t *testing.T) {
		url, remove, err := testdb.Create(t.Context(), nodes[0].URL())
		must(t, err)
		t.Cleanup(func() { must(t, remove(context.Background())) })
		url, _ = testdb.Balanced(t, url, nodes[1].URL(), nodes[2].URL())
		centertest.RunOnNodes(t, url)
	})
}
