package postgres

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// F8: what servers say: those of PostgreSQL by several packagers and hosts, and those of other products.
func TestOtherProductsThanPostgreSQLAreRefused(t *testing.T) {
	t.Parallel()
	for says, product := range map[string]string{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit":                               "",
		"PostgreSQL 16.4 on x86_64-pc-linux-musl, compiled by gcc (Alpine 13.2.1_git20240309) 13.2.1 20240309, 64-bit":                                              "",
		"PostgreSQL 18beta1 on aarch64-unknown-linux-gnu, compiled by gcc (GCC) 14.2.1, 64-bit":                                                                     "",
		"PostgreSQL 13.3 on x86_64-pc-linux-gnu, compiled by x86_64-pc-linux-gnu-gcc (GCC) 7.4.0, 64-bit":                                                           "", // Aurora PostgreSQL
		"PostgreSQL 15.4 (EnterpriseDB Advanced Server 15.4.0) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0, 64-bit":                                         "",
		"PostgreSQL 16.3 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.4.1, 64-bit":                                                       "",
		"PostgreSQL 16.1, compiled by Visual C++ build 1937, 64-bit":                                                                                                "",
		"PostgreSQL 17.0 on x86_64-windows, compiled by msvc-19.40.33813, 64-bit":                                                                                   "",
		"CockroachDB CCL v24.3.5 (x86_64-pc-linux-gnu, built 2025/02/03 17:28:15, go1.22.8 X:nocoverageredesign)":                                                   "CockroachDB",
		"PostgreSQL 11.2-YB-2.20.1.3-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6, 64-bit":                                                           "YugabyteDB",
		"PostgreSQL 15.2-YB-2.25.0.0-b0 on aarch64-unknown-linux-gnu, compiled by clang version 17.0.6, 64-bit":                                                     "YugabyteDB",
		"PostgreSQL 12.12 (Greenplum Database 7.0.0 build dev) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 8.5.0, 64-bit compiled on Aug  1 2023":                 "Greenplum",
		"PostgreSQL 14.4 (WarehousePG 7.2.0 build commit:abc) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.3.0, 64-bit":                                         "WarehousePG",
		"PostgreSQL 12.12 (Greenplum Database 7.5.0-WHPG build dev) on x86_64-pc-linux-gnu, compiled by gcc (GCC) 9.4.0, 64-bit compiled on Jan 1 2025 WarehousePG": "WarehousePG",
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.48805":                                 "Amazon Redshift",
		"(openGauss 5.0.0 build a07d57c3) compiled at 2023-03-29 03:09:38 commit 0 last mr":                                                                         "openGauss",
		"PostgreSQL 9.5 on x86_64-unknown-linux-gnu (Materialize 26.36.0)":                                                                                          "Materialize",
		"PostgreSQL 13.14.0-RisingWave-2.3.2 (58c5893670f326f0922b9bc58c61c83cabeccaa8)":                                                                            "RisingWave",
		"PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB":                                                                                       "QuestDB",
		"PostgreSQL 14.1": "no PostgreSQL that Rota knows",
		"DuckDB v1.1.3":   "no PostgreSQL that Rota knows",
	} {
		err := checkVendor(t.Context(), testdb.Answering(t, map[string][]any{"version()": {says}, "iam_pg_role_mappings": {false}}))
		wantProduct(t, says, err, product)
	}
	for _, says := range []string{"PostgreSQL 16", "PostgreSQL 16.4 on aarch64-unknown-linux-gnu, compiled by gcc, 64-bit"} {
		err := checkVendor(t.Context(), testdb.Answering(t, map[string][]any{"version()": {says}, "iam_pg_role_mappings": {true}}))
		wantProduct(t, says, err, "Aurora DSQL")
	}
	err := checkVendor(t.Context(), testdb.Answering(t, map[string][]any{"version()": {"FooDB 7"}}))
	wantProduct(t, "without a catalog", err, "no PostgreSQL that Rota knows")
}

func wantProduct(t *testing.T, says string, err error, product string) {
	t.Helper()
	if product == "" && err != nil || product != "" && (err == nil || !strings.HasPrefix(err.Error(), "this server is "+product+" (it says ")) {
		t.Errorf("%s: got error %v, want %q", says, err, product)
	}
}

// The probe asks for the vendor first: the other questions may mean nothing to another product.
func TestPostgresIsAskedForTheVendorFirst(t *testing.T) {
	t.Parallel()
	_, err := probe(t.Context(), testdb.Answering(t, map[string][]any{"version()": {"CockroachDB CCL v24.3.5"}}))
	wantProduct(t, "probe", err, "CockroachDB")
}
