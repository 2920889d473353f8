// Package engines has the results of `make engines`: what the tests found on each engine that Rota supports. The files
// are in docs/engines, and the table of docs/engines.md is made of them.
package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Result is what the tests found on one engine. A part is nil if it was never run there.
type Result struct {
	Engine      string       `json:"engine"` // the product and its version, as the server says
	Conformance *Conformance `json:"conformance,omitempty"`
	Failover    *Failover    `json:"failover,omitempty"`
}

// Conformance is a run of the suite of package centertest.
type Conformance struct {
	Date   string `json:"date"` // 2006-01-02
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
}

// Failover is a play of the scenario in package faults that does many rows under faults.
type Failover struct {
	Date      string  `json:"date"`
	Servers   string  `json:"servers"` // of the database
	Rows      int     `json:"rows"`
	Faults    []Fault `json:"faults"`
	Lost      int     `json:"lost"`       // rows that did not take effect
	Twice     int     `json:"twice"`      // rows that took effect more than once
	TwoOwners int     `json:"two_owners"` // epochs of a queue that two servers worked under
}

// Fault is one fault of a fail-over, with the longest times in which nothing took effect, in seconds.
type Fault struct {
	Name  string  `json:"name"`
	All   float64 `json:"all"`   // no row of any queue
	Queue float64 `json:"queue"` // no row of one of the queues
}

// The attributes of tests (testing.T.Attr) that carry parts of a result.
const (
	EngineAttr   = "engine"   // Result.Engine
	FailoverAttr = "failover" // a Failover in JSON, without the date
)

// Read reads a result. A file that does not exist is an empty result.
func Read(file string) (r Result, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}

// Write writes a result. It creates the directory.
func (r Result) Write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
