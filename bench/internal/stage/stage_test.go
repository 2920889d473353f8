package stage

import (
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	for _, s := range ForTest(t) {
		t.Run(s.Kind, func(t *testing.T) {
			d, err := s.Fresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close(t.Context())
			if err := d.Do(t.Context(), "CREATE TABLE numbers (n bigint PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			u, err := d.Measure(t.Context(), func() error {
				for range 50 {
					if err := d.Do(t.Context(), "INSERT INTO numbers SELECT COALESCE(MAX(n), 0) + 1 FROM numbers"); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			// Background threads of the server add a few statements.
			if u.Statements < 50 || u.Statements > 60 || u.RowsMade < 50 || u.RowsMade > 60 || u.Took <= 0 || u.Took > time.Minute {
				t.Errorf("50 inserts counted as %+v", u)
			}
			if s.private != nil && s.process() == 0 {
				t.Error("process of the private server not found")
			}
		})
	}
}
