package schema

import (
	"fmt"
	"io/fs"
	"strings"
)

// upMark is the line of a migration after which its statements begin.
const upMark = "-- +goose Up\n"

// begunFiles holds migrations with a statement before their own. goose has no hook at the begin of a transaction. A
// setting of the connection would reach other clients behind PgBouncer in transaction mode. A statement in each file
// could be forgotten.
type begunFiles struct {
	fs.FS
	statement string
}

// Open returns a migration with the statement, or a directory as it is.
func (b begunFiles) Open(name string) (fs.File, error) {
	if !strings.HasSuffix(name, ".sql") {
		return b.FS.Open(name)
	}
	text, err := fs.ReadFile(b.FS, name)
	if err != nil {
		return nil, err
	}
	head, statements, found := strings.Cut(string(text), upMark)
	if !found {
		return nil, fmt.Errorf("%s has no line %q", name, strings.TrimSpace(upMark))
	}
	f, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return begunFile{f, strings.NewReader(head + upMark + b.statement + "\n" + statements)}, nil
}

// begunFile is a file with another text.
type begunFile struct {
	fs.File
	text *strings.Reader
}

// Read reads the text.
func (f begunFile) Read(p []byte) (int, error) { return f.text.Read(p) }
