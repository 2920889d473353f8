package postgres

import (
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// params says what happens to each parameter of lib/pq, and to the settings of the session that it would send.
var params = sqldb.Params{
	// Connecting.
	"host":                      sqldb.Pass(),
	"hostaddr":                  sqldb.Only(matches(`^[0-9A-Fa-f:.,]+$`), "must be a list of IP addresses"),
	"port":                      sqldb.Only(matches(`^[0-9,]+$`), "must be a port, or one for each host"),
	"dbname":                    sqldb.Pass(),
	"user":                      sqldb.Pass(),
	"password":                  sqldb.Pass(),
	"passfile":                  sqldb.Pass(),
	"service":                   sqldb.Pass(),
	"application_name":          sqldb.Pass(),
	"fallback_application_name": sqldb.Pass(),
	"sslmode":                   sqldb.Pass(),
	"sslnegotiation":            sqldb.Pass(),
	"sslcert":                   sqldb.Pass(),
	"sslkey":                    sqldb.Pass(),
	"sslrootcert":               sqldb.Pass(),
	"sslsni":                    sqldb.Pass(),
	"sslinline":                 sqldb.Pass(),
	"ssl_min_protocol_version":  sqldb.Pass(),
	"ssl_max_protocol_version":  sqldb.Pass(),
	"min_protocol_version":      sqldb.Pass(),
	"max_protocol_version":      sqldb.Pass(),
	"krbsrvname":                sqldb.Pass(),
	"krbspn":                    sqldb.Pass(),
	"load_balance_hosts":        sqldb.Pass(),
	"connect_timeout":           sqldb.Only(matches(`^[0-9]+$`), "must be a number of seconds"),
	"target_session_attrs": sqldb.Only(sqldb.OneOf("any", "read-write", "primary"), "must be read-write, "+
		"primary or any: a roster needs to write"),

	// What statements mean, and what they return.
	"binary_parameters":              sqldb.Force("yes", "behind PgBouncer the rows of another statement would come back"),
	"disable_prepared_binary_result": sqldb.Pass(),
	"client_encoding":                sqldb.Force("UTF8", "the driver knows no other"),
	"datestyle":                      sqldb.Force("ISO, MDY", "the driver knows no other"),
	"options":                        sqldb.Pass(), // checkOptions

	// Settings of the session. The columns of times have time zones.
	"search_path":                         sqldb.Pass(),
	"role":                                sqldb.Pass(),
	"tz":                                  sqldb.Pass(),
	"timezone":                            sqldb.Pass(),
	"TimeZone":                            sqldb.Pass(),
	"geqo":                                sqldb.Pass(),
	"jit":                                 sqldb.Pass(),
	"plan_cache_mode":                     sqldb.Pass(),
	"work_mem":                            sqldb.Pass(),
	"client_min_messages":                 sqldb.Pass(),
	"extra_float_digits":                  sqldb.Pass(),
	"statement_timeout":                   sqldb.Pass(),
	"lock_timeout":                        sqldb.Pass(), // the roster's own transactions have theirs
	"idle_in_transaction_session_timeout": sqldb.Pass(), // as well
	"idle_session_timeout":                sqldb.Pass(),
	"tcp_user_timeout":                    sqldb.Pass(),
	"tcp_keepalives_idle":                 sqldb.Pass(),
	"tcp_keepalives_interval":             sqldb.Pass(),
	"tcp_keepalives_count":                sqldb.Pass(),
	"default_transaction_isolation":       sqldb.Pass(),
	"default_transaction_read_only":       sqldb.Pass(), // Probe refuses it if it is on
	"standard_conforming_strings":         sqldb.Only(sqldb.OneOf("on"), "must be on: a backslash would have a meaning"),
	"synchronous_commit": sqldb.Only(sqldb.OneOf("on", "remote_apply"), "must be on or remote_apply: "+
		"after a crash an epoch would be used twice"),
	"session_replication_role": sqldb.Refuse("triggers and foreign keys would be off"),
	"transform_null_equals":    sqldb.Refuse("= NULL would find rows"),
	"zero_damaged_pages":       sqldb.Refuse("damaged rows would vanish"),
}

func matches(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// option is one setting of the parameter options, and of PGOPTIONS.
var option = regexp.MustCompile(`^(?:-c\s*|--)([A-Za-z_][A-Za-z0-9_.-]*)=(\S*)(?:\s+|$)`)

// checkOptions checks the settings in the parameter options, or in PGOPTIONS, as if they stood in the URL.
func checkOptions(options string) error {
	for rest := strings.TrimSpace(options); rest != ""; {
		m := option.FindStringSubmatch(rest)
		if m == nil || strings.Contains(m[2], `\`) {
			return errors.New("database URL: options (PGOPTIONS) must be a list of -c name=value, " +
				"without white space in the values")
		}
		query := url.Values{strings.ReplaceAll(m[1], "-", "_"): {m[2]}}
		passed, err := params.Check(query)
		if err != nil {
			return err
		}
		if len(passed) == 0 {
			return errors.New("database URL: options (PGOPTIONS) must not set what is forced on each connection: " + m[1])
		}
		rest = rest[len(m[0]):]
	}
	return nil
}
