package demo

import (
	_ "embed" // for rota.yaml
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const configName = "rota.yaml"

//go:embed rota.yaml
var configText string

// folder holds rota.yaml, the workers' logs and the SQLite file.
type folder struct {
	path string
	keep bool
	used bool // it has a rota.yaml
}

// newFolder makes the directory keep, or a temporary one.
func newFolder(keep string) (*folder, error) {
	if keep == "" {
		path, err := os.MkdirTemp("", "rota-demo-")
		return &folder{path: path}, err
	}
	path, err := filepath.Abs(keep)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("--keep %s: the directory must be empty or new, but contains %s", keep, list[0].Name())
	}
	return &folder{path: path, keep: true}, nil
}

// writeConfig writes the workers' rota.yaml. Only the user may read it: the URL may hold a password.
func (f *folder) writeConfig(url string) error {
	f.used = true
	// YAML has one escape within single quotes.
	text := strings.Replace(configText, "DATABASE", strings.ReplaceAll(url, "'", "''"), 1)
	return os.WriteFile(filepath.Join(f.path, configName), []byte(text), 0o600)
}

// end removes the folder, or prints its path if the files stay. A failed demo leaves its files too.
func (f *folder) end(out io.Writer, failed bool) error {
	if f.used && (f.keep || failed) {
		_, err := fmt.Fprintf(out, "Files kept in %s\n", f.path)
		return err
	}
	if f.keep {
		return nil
	}
	return os.RemoveAll(f.path)
}
