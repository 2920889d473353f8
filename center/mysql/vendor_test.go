package mysql

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// F8: what servers say in VERSION() and version_comment: those of MySQL and MariaDB by several packagers and hosts, and those
// of other products.
func TestOtherProductsThanMySQLAreRefused(t *testing.T) {
	t.Parallel()
	for says, product := range map[[2]string]string{
		{"9.7.4-2", "(Debian)"}:                                             "",
		{"8.4.0", "MySQL Community Server - GPL"}:                           "",
		{"8.0.36-0ubuntu0.22.04.1", "(Ubuntu)"}:                             "",
		{"8.0.35-27", "Percona Server (GPL), Release 27, Revision 2f8eeab"}: "",
		{"8.0.28", "Source distribution"}:                                   "", // Aurora MySQL
		{"8.0.31-google", "(Google)"}:                                       "",
		{"10.11.14-MariaDB-0+deb12u2", "Debian 12"}:                         "",
		{"11.4.2-MariaDB", "mariadb.org binary distribution"}:               "",
		{"8.0.30-Vitess", "Version: 18.0.0-SNAPSHOT (Git revision 122ee758cf4f20f20e8703fcb21dea93765e3e2b branch 'main')"}: "Vitess",
		{"8.0.23-PlanetScale", "PlanetScale"}:                                                             "PlanetScale",
		{"5.7.25-OceanBase-v4.2.1.0", "OceanBase_CE 4.2.1.0"}:                                             "OceanBase",
		{"5.7.32", "SingleStoreDB source distribution (compatible; MySQL Enterprise & MySQL Commercial)"}: "SingleStore",
		{"5.7.25-TDDL-5.4.19-20251031", "PolarDB-X"}:                                                      "PolarDB-X",
		{"8.0.30-MatrixOne-v4.0.0-rc3", "MatrixOne"}:                                                      "MatrixOne",
		{"8.0.33", "Dolt"}: "Dolt",
		{"5.7.99", "Doris version doris-2.0.3-rc06-37d31a5"}: "Apache Doris",
		{"8.0.33", "StarRocks version 3.3.0"}:                "StarRocks",
	} {
		d, err := askVendor(t.Context(), testdb.Answering(t, map[string][]any{"VERSION()": {says[0], says[1]}}))
		wantProduct(t, says[0], err, product)
		if want := map[bool]*sqldb.Dialect{true: mariadb, false: dialect}[strings.Contains(says[0], "MariaDB")]; err == nil && d != want {
			t.Errorf("%s: dialect %s, want %s", says[0], d.Name, want.Name)
		}
	}
}

func wantProduct(t *testing.T, says string, err error, product string) {
	t.Helper()
	if product == "" && err != nil || product != "" && (err == nil || !strings.HasPrefix(err.Error(), "this server is "+product+" (it says ")) {
		t.Errorf("%s: got error %v, want %q", says, err, product)
	}
}

// The probe asks for the vendor first: the other questions may mean nothing to another product.
func TestMySQLIsAskedForTheVendorFirst(t *testing.T) {
	t.Parallel()
	_, err := probe(t.Context(), testdb.Answering(t, map[string][]any{"VERSION()": {"8.0.33", "Dolt"}}))
	wantProduct(t, "probe", err, "Dolt")
}

// What TiDB says of itself, also with another server-version in its settings, and what it must have set.
func TestTiDBIsAskedForItsSettings(t *testing.T) {
	t.Parallel()
	const comment = "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible"
	for _, test := range []struct{ version, comment, release, checks, noop, refused string }{
		{"8.0.11-TiDB-v8.5.3", comment, "v8.5.3", "1", "OFF", ""},
		{"8.0.11-TiDB-v8.5.3-serverless", "", "v8.5.3-serverless", "1", "OFF", ""},
		{"8.0.36", comment, "v9.0.0", "ON", "0", ""},
		{"8.0.11-TiDB-v8.4.0", comment, "v8.4.0", "1", "OFF", "TiDB 8.4 is too old"},
		{"8.0.11-TiDB-None", comment, "None", "1", "OFF", "cannot read the version"},
		{"8.0.11-TiDB-v8.5.3", comment, "v8.5.3", "0", "OFF", "tidb_enable_check_constraint is OFF"},
		{"8.0.11-TiDB-v8.5.3", comment, "v8.5.3", "1", "WARN", "tidb_enable_noop_functions is WARN"},
	} {
		d, err := askVendor(t.Context(), testdb.Answering(t, map[string][]any{
			"TIDB_VERSION()": {"Release Version: " + test.release + "\nEdition: Community", test.checks, test.noop},
			"SELECT VERSION": {test.version, test.comment},
		}))
		if test.refused == "" && (err != nil || d != tidb) || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%+v: error %v, dialect TiDB %t", test, err, d == tidb)
		}
	}
}
