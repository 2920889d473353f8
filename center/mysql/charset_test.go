package mysql

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestCharacterSetsOfTheURL(t *testing.T) {
	for _, query := range []string{
		"charset=gbk", "charset=utf8mb4,gbk", "charset=utf8", "charset=utf8mb4%3BSET", "collation=gbk_chinese_ci", "collation=latin1_bin",
		"charset=utf8mb4&collation=big5_bin", "character_set_client=gbk", "character_set_connection=gbk", "character_set_results=gbk",
		"collation_connection=gbk_chinese_ci", "CHARACTER_SET_CLIENT=gbk", "@@session.character_set_client=gbk",
		"sort_buffer_size=262144,character_set_client%3Dgbk", "sort_buffer_size=262144,%20character_set_client=gbk",
	} {
		d := URL("mysql://app@127.0.0.1/d?" + query)
		if d.Err == nil || strings.Contains(d.Err.Error(), "\n") {
			t.Errorf("%s: %v", query, d.Err)
		}
	}
	for _, query := range []string{"charset=utf8mb4", "charset=UTF8MB4", "collation=utf8mb4_bin", "charset=utf8mb4&collation=utf8mb4_0900_ai_ci"} {
		if d := URL("mysql://app@127.0.0.1/d?" + query); d.Err != nil {
			t.Errorf("%s: %v", query, d.Err)
		}
	}
}

// The server has the last word: init_connect, and servers that disregard the character set of the handshake.
func TestCharacterSetOfTheServer(t *testing.T) {
	server := testdb.Own(t, testdb.MySQL)
	admin := open(t, server.URL(), sqldb.RoleStore)
	for _, statement := range []string{
		"CREATE USER app@'%'", "GRANT ALL ON test.* TO app@'%'", "SET GLOBAL init_connect = 'SET NAMES gbk'", // not for root
	} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("app")
	const want = "the connection's character set is gbk (character_set_client) and gbk (character_set_connection), must be utf8mb4"
	for _, role := range []sqldb.Role{sqldb.RoleStore, sqldb.RoleHeartbeat, sqldb.RoleDealers, sqldb.RoleSchema} {
		err := open(t, u.String(), role).PingContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("role %d: %v", role, err)
		}
	}
	u.RawQuery = "charset=utf8mb4" // sent after init_connect
	var harmless string
	const gbk = "\xbf' OR 1=1 -- "
	if err := open(t, u.String(), sqldb.RoleDealers).QueryRowContext(t.Context(), "SELECT HEX(?)", gbk).Scan(&harmless); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%X", gbk); harmless != want {
		t.Errorf("a parameter became %s, want %s", harmless, want)
	}
}
