package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// vendors are the products with MySQL's face that are refused. They accept lock clauses and ignore them, or lack the
// statements of the roster. There is no list of what MySQL's own servers say: packagers and hosts write anything behind
// the version.
var vendors = sqldb.Vendors{
	{"vitess", "Vitess"},
	{"planetscale", "PlanetScale"},
	{"oceanbase", "OceanBase"},
	{"singlestore", "SingleStore"},
	{"tddl", "PolarDB-X"},
	{"matrixone", "MatrixOne"},
	{"dolt", "Dolt"},
	{"doris", "Apache Doris"},
	{"starrocks", "StarRocks"},
}

// askVendor returns the dialect of the server's vendor. It returns an error for a server that is neither MySQL nor
// MariaDB nor TiDB (F8), or too old.
func askVendor(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
	var version, comment string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@version_comment").Scan(&version, &comment); err != nil {
		return nil, fmt.Errorf("ask for the version: %w", err)
	}
	if isTiDB(version, comment) {
		return tidb, checkTiDB(ctx, db)
	}
	if err := vendors.Refuse(version, comment); err != nil {
		return nil, err
	}
	if isMariaDB(version) {
		return mariadb, checkVersion("MariaDB", version, 10, 6)
	}
	return dialect, checkVersion("MySQL", version, 8, 0)
}
