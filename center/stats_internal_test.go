package center

import (
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
)

func TestEachErrorHasAKind(t *testing.T) {
	for class := sqldb.Other; class <= sqldb.BadData; class++ {
		if errorKinds[class] == "" {
			t.Errorf("an error that is %q is counted as no kind", class)
		}
	}
}
