package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at postgres://user:password@host:5432/database?sslmode=verify-full, with the parameters of
// lib/pq behind the question mark, as far as they leave the roster intact. A list of hosts, host1:5432,host2:5432, is
// tried in order; a host that takes no writes is passed over. The environment (PGSSLMODE and so on) says what the URL
// leaves open. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	t, err := parse(raw)
	if err != nil {
		return sqldb.Database{Err: err}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: t.url.Address(),
		Local:   local(t.config),
		Connector: func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
			return connector(t.config, r, o)
		},
		Listen:  listen(t),
		Probe:   probe,
		CheckTx: checkTx,
		Notes:   func(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) { return notes(ctx, db, t.config) },
	}
}

// target is a parsed URL, and what the driver makes of it and of the environment.
type target struct {
	url    *sqldb.URL
	config pq.Config
}

func parse(raw string) (t target, err error) {
	u, err := sqldb.ParseURL(raw, "postgres://...", "postgres", "postgresql")
	if err != nil {
		return t, err
	}
	if u.Query, err = params.Check(u.Query); err != nil {
		return t, err
	}
	cfg, err := pq.NewConfig(dsn(u))
	if err != nil {
		return t, fmt.Errorf("database URL: %w", err)
	}
	if err := checkOptions(cfg.Options); err != nil {
		return t, err
	}
	all := servers(cfg)
	if socket(all[0]) && slices.ContainsFunc(all, func(h pq.ConfigMultihost) bool { return !socket(h) }) {
		return t, errors.New("database URL: a list of hosts must not begin with a Unix socket: the driver would use TLS " +
			"for none of them")
	}
	// The default of lib/pq, require, refuses a server without TLS, which is what runs on a developer's own machine.
	if cfg.SSLMode == "" {
		cfg.SSLMode = pq.SSLModeRequire
		if local(cfg) {
			cfg.SSLMode = pq.SSLModeDisable
		}
	}
	if len(all) > 1 && cfg.TargetSessionAttrs == "" {
		cfg.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	}
	return target{u, cfg}, nil
}

// servers returns the hosts that the driver tries.
func servers(cfg pq.Config) []pq.ConfigMultihost {
	return append([]pq.ConfigMultihost{{Host: cfg.Host, Hostaddr: cfg.Hostaddr, Port: cfg.Port}}, cfg.Multi...)
}

// socket reports whether a host is a Unix socket.
func socket(h pq.ConfigMultihost) bool {
	return !h.Hostaddr.IsValid() && (filepath.IsAbs(h.Host) || strings.HasPrefix(h.Host, "@"))
}

// local reports whether all hosts are this host. The driver connects to the address, and not to the name, if it has
// one.
func local(cfg pq.Config) bool {
	for _, h := range servers(cfg) {
		name := h.Host
		if h.Hostaddr.IsValid() {
			name = h.Hostaddr.String()
		}
		if !socket(h) && !(sqldb.Host{Name: name}).Loopback() {
			return false
		}
	}
	return true
}

// dsn returns the URL in the form keyword='value' of lib/pq, whose own parser prints passwords in its errors and knows
// one host. The parameters of the URL win.
func dsn(u *sqldb.URL) string {
	values := map[string]string{"user": u.User, "password": u.Password, "dbname": u.Database}
	values["host"], values["port"] = hosts(u.Hosts)
	for name := range u.Query {
		values[name] = u.Query.Get(name)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if value := values[name]; value != "" {
			list = append(list, name+"='"+escape.Replace(value)+"'")
		}
	}
	return strings.Join(list, " ")
}

var escape = strings.NewReplacer(`'`, `\'`, `\`, `\\`)

// hosts returns the hosts and their ports as lists. Without any port, that of the environment applies.
func hosts(list []sqldb.Host) (names, ports string) {
	named := slices.ContainsFunc(list, func(h sqldb.Host) bool { return h.Port != "" })
	for i, h := range list {
		sep := ","
		if i == 0 {
			sep = ""
		}
		names += sep + h.Name
		if named {
			ports += sep + cmp.Or(h.Port, defaultPort)
		}
	}
	return names, ports
}

const defaultPort = "5432"

// params says what happens to each parameter of lib/pq, and to the settings of the session that it would send.
var params = sqldb.Join(
	sqldb.Pass().Each(
		// Connecting.
		"host", "dbname", "user", "password", "passfile", "service", "application_name", "fallback_application_name",
		"sslmode", "sslnegotiation", "sslcert", "sslkey", "sslrootcert", "sslsni", "sslinline", "ssl_min_protocol_version",
		"ssl_max_protocol_version", "min_protocol_version", "max_protocol_version", "krbsrvname", "krbspn",
		"load_balance_hosts", "disable_prepared_binary_result",
		"options", // checkOptions checks what is in it

		// Settings of the session. The columns of times have time zones.
		"search_path", "role", "tz", "timezone", "TimeZone", "geqo", "jit", "plan_cache_mode", "work_mem",
		"client_min_messages", "extra_float_digits", "statement_timeout", "idle_session_timeout", "tcp_user_timeout",
		"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "default_transaction_isolation",
		"lock_timeout", "idle_in_transaction_session_timeout", // the roster's own transactions have theirs
		"default_transaction_read_only", // Probe refuses it if it is on
	),
	sqldb.Params{
		"hostaddr":        sqldb.Only(matches(`^[0-9A-Fa-f:.,]+$`), "must be a list of IP addresses"),
		"port":            sqldb.Only(matches(`^[0-9,]+$`), "must be a port, or one for each host"),
		"connect_timeout": sqldb.Only(matches(`^[0-9]+$`), "must be a number of seconds"),
		"target_session_attrs": sqldb.Only(sqldb.OneOf("any", "read-write", "primary"), "must be read-write, "+
			"primary or any: a roster needs to write"),

		// What statements mean, and what they return.
		"binary_parameters":           sqldb.Force("yes", "behind PgBouncer the rows of another statement would come back"),
		"client_encoding":             sqldb.Force("UTF8", "the driver knows no other"),
		"datestyle":                   sqldb.Force("ISO, MDY", "the driver knows no other"),
		"standard_conforming_strings": sqldb.Only(sqldb.OneOf("on"), "must be on: a backslash would have a meaning"),
		"synchronous_commit": sqldb.Only(sqldb.OneOf("on", "remote_apply"), "must be on or remote_apply: "+
			"after a crash an epoch would be used twice"),
		"session_replication_role": sqldb.Refuse("triggers and foreign keys would be off"),
		"transform_null_equals":    sqldb.Refuse("= NULL would find rows"),
		"zero_damaged_pages":       sqldb.Refuse("damaged rows would vanish"),
	},
)

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

// tlsNote says what TLS protects, for an operator.
func tlsNote(cfg pq.Config) sqldb.Note {
	ok := func(finding string) sqldb.Note { return sqldb.Note{Kind: "TLS", OK: true, Finding: finding} }
	bad := func(format string, args ...any) sqldb.Note {
		return sqldb.Note{
			Kind: "TLS", Hint: "sslmode=verify-full in the URL, and sslrootcert if the certificate is your own",
			Finding: fmt.Sprintf(format, args...),
		}
	}
	switch cfg.SSLMode {
	case pq.SSLModeVerifyFull:
		return ok("encrypted; the server's certificate and its name are verified (sslmode=verify-full)")
	case pq.SSLModeVerifyCA:
		return ok("encrypted; the server's certificate is verified, and not its name (sslmode=verify-ca)")
	}
	switch {
	case local(cfg):
		return ok("the database is on this host: nothing needs to be verified")
	case cfg.SSLMode == pq.SSLModeRequire && cfg.SSLRootCert != "":
		return ok("encrypted; the server's certificate is verified, and not its name (sslmode=require with sslrootcert)")
	case cfg.SSLMode == pq.SSLModeRequire:
		return bad("encrypted, but the server is not verified (sslmode=require): another host could take its place and " +
			"read the password")
	case cfg.SSLMode == pq.SSLModeDisable:
		return bad("not encrypted (sslmode=disable): the network can read and change what is sent")
	}
	return bad("perhaps not encrypted, and the server is not verified (sslmode=%s): the network can read and change what "+
		"is sent", cfg.SSLMode)
}

// explaining says in the error of a server without TLS how to connect without it, and in that of a file the parameter
// that names the file.
type explaining struct {
	driver.Connector
	config pq.Config
}

// Connect implements driver.Connector.
func (c explaining) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return nil, fmt.Errorf("%w; sslmode=disable in the URL connects without TLS", err)
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		for name, path := range map[string]string{
			"sslrootcert": c.config.SSLRootCert, "sslcert": c.config.SSLCert, "sslkey": c.config.SSLKey,
		} {
			if path == file.Path {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return conn, err
}
