package center_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	testdb.Each(t, centertest.Run)
}
