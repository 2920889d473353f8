package demo

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

const (
	configName = "rota.yaml"
	ownSign    = "DEMO"
)

// folder holds what the demo leaves for reading.
type folder struct {
	path string
	keep bool
}

// newFolder makes the directory keep, or a temporary one.
func newFolder(keep string) (*folder, error) {
	if keep == "" {
		path, err := os.MkdirTemp("", "rota-demo-")
		return &folder{path: path}, err
	}
	path, err := filepath.Abs(keep)
	if err != nil {
		return nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("--keep %s: must be an empty or a new directory, and holds %s", keep, list[0].Name())
	}
	return &folder{path: path, keep: true}, nil
}

//go:embed rota.yaml.tmpl
var configText string

// The single quotes of YAML know one escape.
var configTemplate = template.Must(template.New(configName).Funcs(template.FuncMap{
	"quote": func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
}).Delims("<<", ">>").Parse(configText))

// writeConfig writes the workers' rota.yaml. It is for the user's eyes only: the URL may hold a password.
func (f *folder) writeConfig(url string) (err error) {
	file, err := os.OpenFile(filepath.Join(f.path, configName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return configTemplate.Execute(file, map[string]any{
		"Database": url, "OwnSign": ownSign, "Queues": queueCount,
		"HeartbeatInterval": heartbeatInterval, "JudgeDeadInterval": judgeDeadInterval,
	})
}

// end removes the folder, or says where it is. What was off is for reading once there is something to read.
func (f *folder) end(out io.Writer, off bool) error {
	_, err := os.Stat(filepath.Join(f.path, configName))
	if (f.keep || off) && err == nil {
		_, err = fmt.Fprintf(out, "Left for reading: %s\n", f.path)
		return err
	}
	if f.keep {
		return nil
	}
	return os.RemoveAll(f.path)
}
