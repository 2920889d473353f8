package center_test

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// The database refuses the data of an item in many ways. None of them is an outage; a missing table is no error of data.
func TestErrorsOfData(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		must(t, c.CheckWrite(t.Context()))
		if _, err := c.DB().ExecContext(t.Context(), `CREATE TABLE parcels (id INTEGER PRIMARY KEY, name VARCHAR(3) NOT NULL, weight INTEGER CHECK (weight < 10), CHECK (LENGTH(name) <= 3))`); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DB().ExecContext(t.Context(), `INSERT INTO parcels VALUES (1, 'a', 1)`); err != nil {
			t.Fatal(err)
		}
		for statement, data := range map[string]bool{
			`INSERT INTO parcels VALUES (1, 'b', 1)`:     true, // the key
			`INSERT INTO parcels VALUES (2, NULL, 1)`:    true,
			`INSERT INTO parcels VALUES (2, 'b', 11)`:    true, // CHECK
			`INSERT INTO parcels VALUES (2, 'abcd', 1)`:  true, // length
			`INSERT INTO nowhere VALUES (2, 'b', 1)`:     false,
			`INSERT INTO parcels VALUES (2, 'b', 1, 'x)`: false,
		} {
			_, err := c.DB().ExecContext(t.Context(), statement)
			if err == nil || c.IsDataError(err) != data {
				t.Errorf("%s: %v is an error of data: %t, want %t", statement, err, c.IsDataError(err), data)
			}
		}
	})
}
