package environ

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// variable has the file descriptor of what the process that executed this one hands over.
const variable = "ROTA_HANDED_OVER"

// ofRuntime are the variables that Go's runtime reads when the process starts: they must be there, and are no secrets.
var ofRuntime = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GODEBUG"}

// handedOver is what /proc does not show.
type handedOver struct{ Args, Environment []string }

// hidden says that this process was executed by Hide.
var hidden atomic.Bool

// Restore takes over what Hide has handed over, if it has: os.Args and the environment. It is called before anything
// else reads them.
func Restore() error {
	text, there := os.LookupEnv(variable)
	if !there {
		return nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("restore the environment: %s (%s) must be a file descriptor", variable, text)
	}
	file := os.NewFile(uintptr(fd), "environment")
	defer func() { _ = file.Close() }() // it is in memory, and was only read
	var all handedOver
	if err := gob.NewDecoder(file).Decode(&all); err != nil {
		return fmt.Errorf("restore the environment: %w", err)
	}
	os.Args = all.Args
	os.Clearenv()
	for _, entry := range all.Environment {
		name, value, _ := strings.Cut(entry, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("restore the environment: %s: %w", name, err)
		}
	}
	hidden.Store(true)
	return nil
}

// Hide makes this process execute itself once more, with arguments that redact has made, and with those variables
// alone that every program gets, and those of Go's runtime. It returns only in the process that was executed so, or
// with an error. A caller has opened nothing yet that must be closed, and has no goroutine that must end.
func Hide(redact func(string) string) error {
	if !hidden.Load() {
		return fmt.Errorf("hide the environment from programs: %w", execute(redact))
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the memory from programs: %w", err)
	}
	return nil
}

// execute does not return unless it fails.
func execute(redact func(string) string) error {
	fd, err := unix.MemfdCreate("environment", 0) // the process that is executed inherits it
	if err != nil {
		return fmt.Errorf("create a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "environment")
	defer func() { _ = file.Close() }()
	if err := gob.NewEncoder(file).Encode(handedOver{os.Args, os.Environ()}); err != nil {
		return fmt.Errorf("write to a file in memory: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("rewind a file in memory: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = redact(arg)
	}
	return unix.Exec(program, args, append(Select(os.Environ(), ofRuntime), variable+"="+strconv.Itoa(fd)))
}
