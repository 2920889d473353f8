package config

import (
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/dutyrota/rota/center"
)

// Connection is the roster to use.
type Connection struct {
	Database string            // URL, such as postgres://app@db/shop?sslmode=verify-full, or what the file of database_file holds. Never empty after a load.
	OwnSign  string            // Separates environments that share a database. Empty means the default of center.
	Schema   center.SchemaMode // What to do about missing tables. Empty means the default of center.

	DatabaseFrom string // What names Database: --database, a variable of the environment, or the path of the file.
}

// File is a whole rota.yaml. Flags have overridden its scalars. The environment has overridden them too, unless the
// flag config names the file.
type File struct {
	Connection
	HTTP              string // host:port to serve probes on. Empty means no probes.
	ExitOnUnreachable bool   // the worker exits if it cannot reach the database at its start
	Console           bool   // HTTP also serves the console, to clients on the same host, who may look.
	// IdleDealerConns and IdleTxTimeout are the fields of center.Options. Zero means the default of center.
	IdleDealerConns int
	IdleTxTimeout   time.Duration
	// ItemRetention is the field of manager.Config. Zero means its default.
	ItemRetention time.Duration
	// Weight is the field of manager.Config. Nil means its default.
	Weight *int
	// WitnessDir is the field of manager.Config. Empty means none.
	WitnessDir string
	// Labels is the field of manager.Config.
	Labels map[string]string
	// Name and ReturnWithin are the fields of manager.Config. Empty and zero mean none.
	Name         string
	ReturnWithin time.Duration

	Tasks []Task // At least one, sorted by name.
}

// Task is an entry below "tasks": one task type and its dealer.
type Task struct {
	Name     string
	Settings center.Settings
	Given    []string // the settings that the file names, even as null, which means the default
	SQL      SQLDealer
}

// SQLDealer is the entry below "dealer: sql:". Load does not check its
// statements.
type SQLDealer struct {
	Select, Execute, ExecuteEach string

	Discard    string   // the statement for a row that has failed for good
	Backlog    string   // the statement that counts the rows that a queue has left
	Key        []string // the columns that identify a row
	AfterStart []string // the values of {{after}} at the start of the table, one for each column of the key

	Cursor, CursorStart []string      // the columns of {{cursor}}, and their values before the first row
	CursorLag           time.Duration // how much later than a larger cursor a row may become visible
	CursorNewest        string        // the statement that selects the largest cursor
	CommitsInOrder      bool          // rows become visible in the order of the cursor
}

// Load reads the file at path. Flags that were set override it. Load uses only
// flags that are named like a top-level key (own-sign for own_sign), and config;
// flags may be nil. The error has one line for each problem of the file, in the order of the
// file.
func Load(path string, flags *pflag.FlagSet) (*File, error) {
	src, err := open(path)
	if err != nil {
		return nil, err
	}
	v := src.scalars(flags)
	f := &File{Connection: src.connection(v, flags), HTTP: v.GetString("http")}
	f.IdleDealerConns, f.IdleTxTimeout = src.idleDealerConns(v, flags), src.idleTxTimeout(v, flags)
	f.ItemRetention, f.Weight = src.itemRetention(v, flags), src.weight(v, flags)
	f.Name, f.ReturnWithin = v.GetString("name"), src.returnWithin(v, flags)
	f.Labels = src.labels(v, flags)
	if f.WitnessDir = v.GetString("witness_dir"); f.WitnessDir != "" && !filepath.IsAbs(f.WitnessDir) {
		src.addScalarProblem(flags, "witness_dir", f.WitnessDir, "must be an absolute path, such as /run/rota")
	}
	if _, _, err := net.SplitHostPort(f.HTTP); f.HTTP != "" && err != nil {
		src.addScalarProblem(flags, "http", f.HTTP, "must be host:port, such as 127.0.0.1:9090")
	}
	f.Console, f.ExitOnUnreachable = src.console(v, flags, f.HTTP), src.bool(v, flags, "exit_on_unreachable")
	f.Tasks = taskSource{src}.tasks()
	return f, src.err()
}

// console reports whether the console is wanted. It needs an address.
func (s *source) console(v *viper.Viper, flags *pflag.FlagSet, http string) bool {
	yes := s.bool(v, flags, "console")
	if yes && http == "" {
		s.addScalarProblem(flags, "console", v.GetString("console"), "needs http, the address to serve it at")
	}
	return yes
}

// bool reads a key that is true or false, or false if it is missing.
func (s *source) bool(v *viper.Viper, flags *pflag.FlagSet, key string) bool {
	text := v.GetString(key)
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		s.addScalarProblem(flags, key, text, "must be true or false")
	}
	return yes
}

// LoadConnection reads only the connection to the roster, for commands that run
// no tasks. An empty path means that there is no file.
func LoadConnection(path string, flags *pflag.FlagSet) (Connection, error) {
	src := &source{}
	if path != "" {
		var err error
		if src, err = open(path); err != nil {
			return Connection{}, err
		}
	}
	c := src.connection(src.scalars(flags), flags)
	return c, src.err()
}
