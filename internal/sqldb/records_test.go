package sqldb_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
)

// A list that is longer than what one statement takes is read and written to its end.
func TestLongLists(t *testing.T) {
	d := anydb.URL("sqlite:" + filepath.Join(t.TempDir(), "rota.db"))
	pool, err := d.Pool(sqldb.RoleStore, sqldb.PoolOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	raw, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Rollback()
	tx := sqldb.Tx{Raw: raw, Dialect: d.Dialect}
	if _, err := tx.Exec(t.Context(), `CREATE TABLE item (id TEXT, state TEXT)`); err != nil {
		t.Fatal(err)
	}
	type item struct {
		ID    string `db:"id"`
		State string `db:"state"`
	}
	var rows []item
	var ids []string
	for i := range 1_201 {
		rows, ids = append(rows, item{fmt.Sprint(i), "NEW"}), append(ids, fmt.Sprint(i))
	}
	if err := sqldb.Insert(t.Context(), tx, "item", rows...); err != nil {
		t.Fatal(err)
	}
	n, err := tx.ExecIn(t.Context(), ids[1:], `UPDATE item SET state = ? WHERE id IN ({ids})`, "DONE")
	if err != nil || n != 1_200 {
		t.Errorf("%d rows were changed, want 1,200 (%v)", n, err)
	}
	got, err := sqldb.RecordsIn[string](t.Context(), tx, ids, `SELECT id FROM item WHERE state = ? AND id IN ({ids})
		ORDER BY rowid`, "DONE")
	if err != nil || !slices.Equal(got, ids[1:]) {
		t.Errorf("%d ids, want 1,200 (%v)", len(got), err)
	}
	if got, err := sqldb.RecordsIn[string](t.Context(), tx, nil, `SELECT id FROM item WHERE id IN ({ids})`); err != nil || got != nil {
		t.Errorf("of no ids: %v, %v", got, err)
	}
}
