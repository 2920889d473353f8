package config

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
)

// Connection is the roster to use.
type Connection struct {
	// Database is the URL, such as postgres://app@db/shop?sslmode=verify-full, or what the file of database_file holds. It
	// is never empty after a load.
	Database string
	// DatabaseFrom is what names Database: --database, a variable of the environment, or the path of the file.
	DatabaseFrom string
	// Data are the data databases, by name.
	Data []DataDatabase

	center.Options
}

// File is a whole rota.yaml. Flags have overridden its single values. The environment has overridden them too, unless
// the flag config names the file.
type File struct {
	Connection
	HTTP              string // host:port to serve the probes, the metrics and /scale on. Empty means not at all.
	Probes            string // host:port to serve the probes alone on, in addition. Empty means not at all.
	Console           bool   // HTTP also serves the console, to clients on the same host, who may look.
	ExitOnUnreachable bool   // the worker exits if it cannot reach the database at its start
	Process           manager.Config

	Tasks []Task // At least one, sorted by name.
}

// Task is an entry below "tasks": one task type and its dealer.
type Task struct {
	Name     string
	Settings center.Settings
	Given    []string // the settings that the file names, even as null, which means the default
	SQL      SQLDealer
	Program  Program

	// Unread says that Load has found a mistake of the dealer, or of a setting on which the rules of the dealer depend.
	// So it is not known what else is wrong with the dealer.
	Unread bool
}

// SQLDealer is the entry below "dealer: sql:". Load does not check its statements.
type SQLDealer struct {
	Select, Execute, ExecuteEach string

	Discard    string   // the statement for a row that has failed for good
	Backlog    string   // the statement that counts the rows that a queue has left
	Key        []string // the columns that identify a row
	OrderKey   string   // the column of the order key; empty if the rows are in no order
	AfterStart []string // the values of {{after}} at the start of the table, one for each column of the key

	Cursor, CursorStart []string      // the columns of {{cursor}}, and their values before the first row
	CursorLag           time.Duration // how much later than a larger cursor a row may become visible
	CursorNewest        string        // the statement that selects the largest cursor
	CommitsInOrder      bool          // rows become visible in the order of the cursor
}

// Program is what executes the items of a task outside of the worker: the entry "command" or "http" below "dealer". At
// most one of them is set.
type Program struct {
	Command []string // a program and its arguments
	Env     []string // the variables of the worker's environment that the command gets
	HTTP    Service
	Answers []string // the operations that it answers beside execute
}

// Given reports whether there is a program.
func (p Program) Given() bool { return len(p.Command) > 0 || p.HTTP.URL != "" }

// Selects reports whether the program selects its items itself.
func (p Program) Selects() bool { return slices.Contains(p.Answers, AnswerSelect) }

// Service is the entry "http". Load does not read its files.
type Service struct {
	URL            string
	SecretFile     string // the file whose one line signs the requests
	SecretVariable string // the variable of the environment that has the secret instead
	CAFile         string // the certificates that sign that of the service; empty for those of the system
	Connections    int    // the most connections of a worker; 0 is the default

	Each      bool              // one request for each row, to an endpoint that does not know the protocol of batches
	Method    string            // of these requests, as are the others; empty is POST
	Headers   map[string]string // with templates, as Body and URL
	Body      string
	Permanent []int // the statuses by which a row is dead at once
}

// Load reads the file at path. Flags that were set override it. Load uses only flags that are named like a top-level
// key (own-sign for own_sign), and config; flags may be nil. The error has one line for each problem of the file, in
// the order of the file. Beside such an error Load returns what it has read.
func Load(path string, flags *pflag.FlagSet) (*File, error) {
	src, err := open(path, flags)
	if err != nil {
		return nil, err
	}
	f := &File{}
	src.single(f, keys)
	f.Tasks = taskSource{src, f.Data}.tasks()
	return f, src.err()
}

// LoadConnection reads only the connection to the roster, for commands that run no tasks. An empty path means that
// there is no file.
func LoadConnection(path string, flags *pflag.FlagSet) (Connection, error) {
	src := &source{flags: flags}
	if path != "" {
		var err error
		if src, err = open(path, flags); err != nil {
			return Connection{}, err
		}
	}
	f := &File{}
	src.single(f, connectionKeys)
	return f.Connection, src.err()
}
