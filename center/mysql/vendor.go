package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// vendors are products with MySQL's face. They accept lock clauses and ignore them, or lack the statements of the
// roster. There is no list of what MySQL's own servers say: packagers and hosts write anything behind the version.
var vendors = sqldb.Vendors{
	{"tidb", "TiDB"},
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

// checkVendor returns an error for a server that is neither MySQL nor MariaDB (F8), or too old.
func checkVendor(ctx context.Context, db *sql.DB) error {
	var version, comment string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@version_comment").Scan(&version, &comment); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	if err := vendors.Refuse(version, comment); err != nil {
		return err
	}
	return checkVersion(version)
}
