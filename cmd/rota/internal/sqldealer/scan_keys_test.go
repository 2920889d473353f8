package sqldealer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
)

// While the statistics of PostgreSQL say that no row waits, execute is found that reads what waits for each batch, and
// not one that finds its rows by their keys.
func TestExecuteThatDoesNotFindItsRowsByTheirKeys(t *testing.T) {
	s := openShop(t, testdb.Reused(t, testdb.Postgres))
	s.exec("CREATE TABLE orders (id bigint, part text, tenant int, state text NOT NULL, PRIMARY KEY (id))",
		fmt.Sprintf(`INSERT INTO orders SELECT n, 'p' || n %% 7, n %% 5, 'SETTLED' FROM generate_series(1, %d) n`, 2*LargeTable),
		"CREATE TABLE small AS SELECT * FROM orders WHERE id < 10", "CREATE TABLE heap AS SELECT * FROM orders",
		"CREATE INDEX orders_work ON orders (state, tenant, id)", "CREATE UNIQUE INDEX orders_part ON orders (tenant, id)",
		"ANALYZE orders, small, heap")
	const waiting = "each execute may read all rows of orders that wait: PostgreSQL finds them by the index orders_work"
	for execute, want := range map[string]string{
		"UPDATE orders SET state = 'SETTLED', part = {{server}} WHERE state = 'NEW' AND id IN ({{keys}})":                                      waiting,
		"WITH x AS (SELECT 1) DELETE FROM orders AS o WHERE o.id IN ({{keys}}) AND o.state = 'NEW'":                                            waiting,
		"UPDATE orders SET part = {{server}} WHERE id IN ({{keys}}) AND (state = 'NEW') IS TRUE":                                               "",
		"UPDATE orders SET part = 'x' WHERE id IN ({{keys}})":                                                                                  "",
		"UPDATE orders SET part = 'x' WHERE tenant = 3 AND (state = 'NEW') IS TRUE AND id IN ({{keys}})":                                       "",
		"UPDATE small SET part = 'x' WHERE state = 'NEW' AND id IN ({{keys}})":                                                                 "",
		"UPDATE heap SET part = 'x' WHERE id IN ({{keys}})":                                                                                    "each execute reads all of heap, which has more than 100000 rows, as no index serves {{keys}}",
		"UPDATE orders o SET part = 'x' FROM small s WHERE s.id = o.id AND o.id IN ({{keys}}) AND s.tenant = 1":                                "",
		"INSERT INTO small (id, state) SELECT id, 'DONE' FROM orders WHERE state = 'NEW' AND id IN ({{keys}}) AND part = {{queue}}":            waiting,
		"UPDATE orders o SET part = 'x' FROM (SELECT tenant FROM heap WHERE state = 'NEW') h WHERE o.id IN ({{keys}}) AND h.tenant = o.tenant": "",
	} {
		for _, number := range []int{1, 100} {
			d := s.dealer(config.SQLDealer{
				Select: "SELECT id FROM small WHERE {{mine id}} LIMIT {{limit}}", Execute: execute, Key: []string{"id"},
			})
			found, err := d.ScanFirst(t.Context(), "TEST", center.Settings{Queues: 2, ExecuteNumber: number})
			got := ""
			if found != nil {
				got = found.Finding
			}
			if err != nil || !strings.HasPrefix(got, want) || (want == "") != (got == "") {
				t.Errorf("%s, %d rows: got %q, %v, want %q", execute, number, got, err, want)
			}
		}
	}
	s.want("SELECT COUNT(*) FROM pg_prepared_statements WHERE name LIKE 'rota_explain%'", "0")
}
