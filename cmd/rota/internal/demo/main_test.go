package demo

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.EveryEngine()
	goleak.VerifyTestMain(m)
}
