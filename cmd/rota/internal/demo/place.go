package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// place is a database, or a part of one, that is the demo's alone.
type place struct {
	name   string // for people, without a password
	url    string
	remove func(context.Context) error
}

// newPlace makes a place at the database URL, or in a file in the folder if there is none.
func newPlace(ctx context.Context, database, folder string) (*place, error) {
	if database == "" {
		return &place{
			name: "SQLite", url: "sqlite:" + filepath.Join(folder, "rota.db"),
			remove: func(context.Context) error { return nil }, // it goes with the folder, or stays with it
		}, nil
	}
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		return newFile(strings.TrimPrefix(path, "//"))
	}
	u, err := url.Parse(database)
	if err != nil {
		return nil, errors.New("--db: not a URL; want postgres://..., mysql://... or sqlite:FILE") // err quotes the password
	}
	s, err := newServer(u)
	if err != nil {
		return nil, err
	}
	name := "rota_demo_" + strings.ToLower(rand.Text()[:8])
	if err := s.exec(ctx, "CREATE "+s.noun+" "+name); err != nil {
		return nil, fmt.Errorf("--db: the demo needs a %s of its own, which %s did not let it create: %w", strings.ToLower(s.noun), u.Redacted(), err)
	}
	return &place{
		name: s.title + ", " + strings.ToLower(s.noun) + " " + name, url: s.within(name),
		remove: func(ctx context.Context) error {
			if err := s.drop(ctx, name); err != nil {
				return fmt.Errorf("the %s %s is left: %w", strings.ToLower(s.noun), name, err)
			}
			return nil
		},
	}, nil
}

// newFile refuses a file that is there: it is somebody's.
func newFile(path string) (*place, error) {
	if path == ":memory:" {
		return nil, errors.New("--db: a database in memory is of one process, and the demo has several")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	// O_EXCL looks and creates at once. An empty file is an empty database.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--db: the demo needs a file of its own: %w", err)
	}
	return &place{name: "SQLite", url: "sqlite:" + path, remove: func(context.Context) error { return removeFile(path) }}, file.Close()
}

func removeFile(path string) error {
	errs := []error{os.Remove(path)}
	for _, suffix := range []string{"-wal", "-shm"} { // what a worker that was killed leaves
		if err := os.Remove(path + suffix); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
