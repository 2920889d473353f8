package testdb

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"
)

// Servers are private servers for other processes.
type Servers struct {
	URLs  map[string]string // by kind of database, and [Pooler]
	parts []io.Closer
}

// StartServers starts a server of each kind, and what ROTA_TEST_ALSO names beside the one of [Postgres]. With an error,
// the servers that have started are still to be closed.
func StartServers(kinds []string) (s *Servers, err error) {
	s = &Servers{URLs: map[string]string{}}
	also, err := Also()
	for _, kind := range kinds {
		if err != nil {
			return s, err
		}
		if kind == Postgres {
			err = s.startPostgres(also)
		} else {
			var server *Server
			server, err = StartServer(kind)
			err = s.keep(kind, server, err)
		}
	}
	return s, err
}

func (s *Servers) startPostgres(also []string) error {
	if slices.Contains(also, patroni) {
		c, err := StartCluster()
		if err != nil {
			return err
		}
		s.parts = append(s.parts, c)
		s.URLs[Postgres] = c.Primary().URL()
	} else {
		server, err := StartServer(Postgres)
		if err := s.keep(Postgres, server, err); err != nil {
			return err
		}
	}
	if slices.Contains(also, standby) {
		server, err := startStandby(s.URLs[Postgres])
		if err == nil {
			s.parts = append(s.parts, server)
			err = makeSynchronous(s.URLs[Postgres])
		}
		if err != nil {
			return err
		}
	}
	if slices.Contains(also, Pooler) {
		server, err := StartPooler(s.URLs[Postgres])
		if err := s.keep(Pooler, server, err); err != nil {
			return err
		}
		s.URLs[Postgres] = server.URL()
	}
	return nil
}

// keep adds a server that has started.
func (s *Servers) keep(kind string, server *Server, err error) error {
	if err == nil {
		s.URLs[kind] = server.URL()
		s.parts = append(s.parts, server)
	}
	return err
}

// Close ends the servers, the last one first.
func (s *Servers) Close() (err error) {
	for _, part := range slices.Backward(s.parts) {
		err = errors.Join(err, part.Close())
	}
	return err
}

// startStandby starts a server that follows the PostgreSQL server at the URL asynchronously.
func startStandby(primary string) (*Server, error) {
	u, err := url.Parse(primary)
	if err != nil {
		return nil, err
	}
	server, err := start(plan{
		kind: Postgres, role: standby,
		env: []string{fmt.Sprintf("PRIMARY=host=127.0.0.1 port=%s user=postgres sslmode=disable", u.Port())},
		url: func(port int) string { return fmt.Sprintf(engines[Postgres].url, port) },
	})
	if err != nil {
		return nil, err
	}
	if err := awaitReplication(primary, `state = 'streaming' AND replay_lsn IS NOT NULL`); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// makeSynchronous makes each commit of the server wait until its standby has it.
func makeSynchronous(primary string) error {
	err := withServer(primary, func(db *sql.DB) error {
		for _, statement := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
			if _, err := db.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return awaitReplication(primary, `sync_state = 'sync'`)
}

// awaitReplication waits until a replication from the server is as the condition on pg_stat_replication says.
func awaitReplication(primary, condition string) error {
	return withServer(primary, func(db *sql.DB) error {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(25 * time.Millisecond) {
			var n int
			err := db.QueryRow(`SELECT COUNT(*) FROM pg_stat_replication WHERE ` + condition).Scan(&n)
			switch {
			case err == nil && n > 0:
				return nil
			case time.Now().After(deadline):
				return errors.Join(fmt.Errorf("no replication from %s after a minute where %s", primary, condition), err)
			}
		}
	})
}

// Version returns what the server at a URL says of its version.
func Version(server string) (version string, err error) {
	err = withServer(server, func(db *sql.DB) error { return db.QueryRow("SELECT VERSION()").Scan(&version) })
	return version, err
}

// withServer calls f with a pool to the server.
func withServer(server string, f func(*sql.DB) error) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	db, err := open(u)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}
