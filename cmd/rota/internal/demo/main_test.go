package demo

import (
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	text.DisableColors()
	goleak.VerifyTestMain(m)
}
