package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"

	"github.com/dutyrota/rota/internal/sqldb"
)

// vendors are products with PostgreSQL's face. Their locks or their isolation differ, so that the roster's statements
// would be accepted and mean something else.
var vendors = sqldb.Vendors{
	{"cockroachdb", "CockroachDB"},
	{"-yb-", "YugabyteDB"},
	{"warehousepg", "WarehousePG"}, // may say Greenplum, too
	{"greenplum", "Greenplum"},
	{"cloudberry", "Cloudberry"},
	{"redshift", "Amazon Redshift"},
	{"opengauss", "openGauss"},
	{"gaussdb", "GaussDB"},
	{"materialize", "Materialize"},
	{"risingwave", "RisingWave"},
	{"questdb", "QuestDB"},
	{"cratedb", "CrateDB"},
}

// genuine matches version() as PostgreSQL builds it. Packagers and hosts add to the middle of it. A product with
// another text is refused even if it is unknown.
var genuine = regexp.MustCompile(`^PostgreSQL \d+\D.*, compiled by .+, (32|64)-bit$`)

// checkVendor returns an error for a server that is not PostgreSQL (F8). Aurora DSQL says what PostgreSQL might say:
// its system table tells.
func checkVendor(ctx context.Context, db *sql.DB) error {
	var says string
	if err := db.QueryRowContext(ctx, `SELECT version()`).Scan(&says); err != nil {
		return fmt.Errorf("ask for the vendor: %w", err)
	}
	if err := vendors.Refuse(says); err != nil {
		return err
	}
	var dsql bool
	err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS c
		JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'sys' AND c.relname = 'iam_pg_role_mappings')`).Scan(&dsql)
	switch {
	case dsql:
		return sqldb.Unsupported("Aurora DSQL", says)
	case !genuine.MatchString(says):
		return sqldb.Unsupported("no PostgreSQL that Rota knows", says)
	}
	return sqldb.Wrap(err, "ask for the vendor")
}
