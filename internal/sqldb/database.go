package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"
)

// Database describes a database that is not open yet: its dialect, its address, and what a program does only with
// databases of its kind. postgres.URL, mysql.URL and sqlite.URL return one.
type Database struct {
	// Dialect is what the URL says about the dialect. It serves until Probe has asked the server: it classifies the errors
	// of connecting.
	Dialect *Dialect
	Address string // the URL without its password
	Local   bool   // on this host, so that a mistyped URL cannot create a second roster elsewhere
	Memory  bool   // the database ends with its connection, so that all roles share one

	// Err is what is wrong with the URL. If it is not nil, the other fields are not set.
	Err error

	// Connector returns what makes the connections of the pool of a role. It does not connect.
	Connector func(r Role, o PoolOptions) (driver.Connector, error)

	// Probe asks the server for its vendor and version, and returns the dialect to speak with it. Servers of several
	// vendors may answer to one URL. Probe refuses a server on which the promises of the roster cannot hold.
	Probe func(context.Context, *sql.DB) (*Dialect, error)

	// CheckTables refuses tables that cannot take part in transactions. Nil if the database has no such tables.
	CheckTables func(context.Context, *sql.DB) error

	// Notes returns what an operator should know about transactions and connections. Nil if the database has no notes.
	Notes func(context.Context, *sql.DB) ([]Note, error)

	// CheckTx asks a transaction of a pool that the program opened itself whether the fence holds in it (F9). The
	// transaction is new, and is rolled back afterwards. idle is how long a fenced transaction may be idle; zero is no
	// limit.
	CheckTx func(ctx context.Context, tx *sql.Tx, idle time.Duration) (PoolFinding, error)

	// Listen receives the notifications of a channel on a connection of its own, until ctx is done or the connection is
	// lost. It calls ready when it listens, and got for each notification, both from its goroutine. Nil if the database
	// has no notifications, or if the program's own connector cannot listen.
	Listen func(ctx context.Context, channel string, ready func(), got func(payload string)) error

	// Node asks which node of a cluster a connection leads to. Nil if the database has no clusters.
	Node func(context.Context, *sql.Conn) (Node, error)
}

// Pool returns a pool of connections for a role, which are not connected yet.
func (d Database) Pool(r Role, o PoolOptions) (*sql.DB, error) {
	c, err := d.Connector(r, o)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Node is what the node of a cluster says about itself and about the session that asks.
type Node struct {
	Name     string
	Size     int    // the number of nodes of the cluster
	SyncWait string // the value of wsrep_sync_wait in the session (F7)
}

// PoolFinding is what CheckTx finds about a pool that the program opened itself.
type PoolFinding struct {
	Unfit   string // the setting, its value and the rule, if the fence does not hold; otherwise empty
	Warning string // what else the program should know; usually empty
}

// PoolOptions are the options of a pool.
type PoolOptions struct {
	Create bool // create a database that does not exist; without it, such a database is an error

	// IdleTxTimeout is how long a dealer's transaction may be idle before the server ends it (F6), where that is a setting
	// of the connection. Zero leaves the server's own setting.
	IdleTxTimeout time.Duration

	// ReplyTimeout is how long a dealer's connection waits for the server. Zero is the default, negative is no limit.
	ReplyTimeout time.Duration
}

// ReplyLimit returns how long a dealer's connection waits for the server, or zero if that is not limited. alone reports
// whether the server can freeze alone: heartbeats then go on over another server, and do not notice it (F10).
func (o PoolOptions) ReplyLimit(alone bool) time.Duration {
	switch {
	case o.ReplyTimeout != 0:
		return max(o.ReplyTimeout, 0)
	case alone:
		return time.Minute
	}
	return 15 * time.Minute
}

// Note is something that an operator should know about a database.
type Note struct {
	Kind    string // of the condition, as package condition lists them
	OK      bool   // the finding is as it should be
	Problem bool   // the finding is wrong, and not only worth knowing
	Subject string // tells it from others of its kind; may be empty
	Finding string
	Hint    string // what to do, if it is not OK
}

// IsolationNote returns a note about the isolation level. usual reports whether the level is the server's default or
// equivalent to it.
func IsolationNote(level string, usual bool) Note {
	if usual {
		return Note{Kind: "DATABASE", Subject: "isolation", OK: true, Finding: "isolation " + level}
	}
	return Note{
		Kind: "DATABASE", Subject: "isolation", Hint: "take the setting back for the role of the workers",
		Finding: fmt.Sprintf("isolation %s: more transactions have to be tried again than with the server's default", level),
	}
}

// Role is what a pool of connections is for.
type Role int

// The roles.
const (
	RoleStore     Role = iota // transactions of the roster
	RoleHeartbeat             // heartbeats only: nothing waits in front of them (S1)
	RoleDealers               // the code of the user
	RoleSchema                // migrations
)

// Brief reports whether the statements of a role are short, so that a long one has met a dead network. The statement of
// a dealer may be anything, and a migration creates an index for as long as the table needs.
func (r Role) Brief() bool { return r == RoleStore || r == RoleHeartbeat }

// IOTimeout bounds each read and each write on connections with brief statements, and each attempt to connect.
const IOTimeout = 3 * time.Second

// ConnectTimeout bounds the half dozen round trips of a new connection.
const ConnectTimeout = 10 * time.Second
