package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
		Pool: func(r sqldb.Role, _ sqldb.PoolOptions) (*sql.DB, error) {
			c, err := connector(t.config, r)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(c), nil
		},
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
		return t, errors.New("database URL: a list of hosts must not begin with a Unix socket: " +
			"the driver would use TLS for " +
			"none of them")
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
