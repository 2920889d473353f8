package docs_test

import (
	"os"
	"strings"
	"testing"
)

// quickstartPages are the quick start for each kind of database, so that a reader has the whole text for theirs. The
// pages beside the first are made of it: each of its texts stands for that of another page in the same place.
var quickstartPages = []struct {
	page, kind string
	texts      []string
}{
	{"quickstart.md", "sqlite", []string{
		"# Quick start\n",
		"It needs Go 1.26 and no database server, because it uses a SQLite file. The same page is there\n" +
			"[for PostgreSQL](quickstart-postgres.md) and [for MySQL](quickstart-mysql.md).",
		"```sh\nmkdir shop",
		"export ROTA_DATABASE=sqlite:shop.db",
		`"github.com/dutyrota/rota/center/sqlite"`,
		"schema.SQLite.Mine",
		"LIMIT ?",
		"sqlite.URL",
		"NOT NULL, UNIQUE (state, id))`",
		"WHERE state = 'NEW' AND id IN ({{keys}})\n        key: id\n```\n",
		"A SQLite file serves one host. On a server of [PostgreSQL](quickstart-postgres.md) or [MySQL](quickstart-mysql.md), start\n" +
			"the worker on as many hosts as you like.",
		"postgres://owner@db/shop?sslmode=verify-full",
	}},
	{"quickstart-postgres.md", "postgres", []string{
		"# Quick start on PostgreSQL\n",
		"It needs Go 1.26 and an empty database on a PostgreSQL server. The same page is there\n" +
			"[for SQLite](quickstart.md), which needs no server, and [for MySQL](quickstart-mysql.md).",
		"If you have no server, start one for this page:\n\n<!-- not run: the test has a server of its own -->\n```sh\n" +
			"docker run --rm --detach --publish 127.0.0.1:5432:5432 --env POSTGRES_PASSWORD=secret --env POSTGRES_DB=shop postgres:18\n" +
			"```\n\n```sh\nmkdir shop",
		"export ROTA_DATABASE='postgres://postgres:secret@127.0.0.1:5432/shop?sslmode=disable'",
		`"github.com/dutyrota/rota/center/postgres"`,
		"schema.Postgres.Mine",
		"LIMIT $3",
		"postgres.URL",
		"NOT NULL);\n\t\tCREATE INDEX IF NOT EXISTS orders_work ON orders (state, (`+schema.Postgres.MineIndex(\"id\", 8)+`), id)`",
		"WHERE id IN ({{keys}}) AND (state = 'NEW') IS TRUE\n        key: id\n```\n\n" +
			"`IS TRUE` lets PostgreSQL [find the rows by their keys](choosing.md#which-index), whatever its statistics say.\n",
		"Start the worker on as many hosts as you like.",
		"postgres://owner@db/shop?sslmode=verify-full",
	}},
	{"quickstart-mysql.md", "mysql", []string{
		"# Quick start on MySQL\n",
		"It needs Go 1.26 and an empty database on a MySQL or MariaDB server. The same page is there\n" +
			"[for SQLite](quickstart.md), which needs no server, and [for PostgreSQL](quickstart-postgres.md).",
		"If you have no server, start one for this page:\n\n<!-- not run: the test has a server of its own -->\n```sh\n" +
			"docker run --rm --detach --publish 127.0.0.1:3306:3306 --env MYSQL_ROOT_PASSWORD=secret --env MYSQL_DATABASE=shop mysql:9\n" +
			"```\n\n```sh\nmkdir shop",
		"export ROTA_DATABASE='mysql://root:secret@127.0.0.1:3306/shop'",
		`"github.com/dutyrota/rota/center/mysql"`,
		"schema.MySQL.Mine",
		"LIMIT ?",
		"mysql.URL",
		"NOT NULL, UNIQUE (state, id))`",
		"WHERE state = 'NEW' AND id IN ({{keys}})\n        key: id\n```\n",
		"Start the worker on as many hosts as you like.",
		"mysql://owner@db/shop",
	}},
}

// Each page is the first one with its own texts.
func TestQuickstartPages(t *testing.T) {
	first := quickstartPages[0]
	source, err := os.ReadFile(first.page)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range quickstartPages[1:] {
		text := "<!-- go test ./docs -update makes this page of quickstart.md -->\n\n" + string(source)
		for i, from := range first.texts {
			if !strings.Contains(text, from) {
				t.Errorf("%s has no %q", first.page, from)
			}
			text = strings.ReplaceAll(text, from, other.texts[i])
		}
		got, err := os.ReadFile(other.page)
		switch {
		case string(got) == text:
		case !*update:
			t.Errorf("%s differs from what %s makes (%v): go test ./docs -update writes it", other.page, first.page, err)
		default:
			if err := os.WriteFile(other.page, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
