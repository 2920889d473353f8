package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

func TestErrorClasses(t *testing.T) {
	cases := map[sqldb.Class][]error{
		sqldb.Interrupted: {&pq.Error{Code: "57014"}},
		sqldb.RolledBack:  {&pq.Error{Code: "40001"}, &pq.Error{Code: "40P01"}, &pq.Error{Code: "55P03"}},
		sqldb.Broken:      {&pq.Error{Code: "57P01"}, &pq.Error{Code: "57P03"}, &pq.Error{Code: "57P02"}, &pq.Error{Code: "53300"}, &pq.Error{Code: "08006"}, &pq.Error{Code: "08P01", Message: "server login has been failing"}, io.ErrUnexpectedEOF},
		sqldb.ReadOnly:    {&pq.Error{Code: "25006"}},
		sqldb.NoTable:     {&pq.Error{Code: "42P01"}},
		sqldb.Duplicate:   {&pq.Error{Code: "23505"}},
		sqldb.BadData:     {&pq.Error{Code: "23503"}, &pq.Error{Code: "22001"}},
		sqldb.Refused: {
			&pq.Error{Code: "42501"}, &pq.Error{Code: "28P01"}, &pq.Error{Code: "3D000"}, &pq.Error{Code: "42704"},
			&pq.Error{Code: "08P01", Message: "unsupported startup parameter: search_path"},
		},
		sqldb.Other: {context.Canceled},
	}
	for want, errs := range cases {
		for _, err := range errs {
			if got := dialect.Class(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("class of %v: got %s, want %s", err, got, want)
			}
		}
	}
}

// A commit whose context has ended has an unknown outcome even if PostgreSQL reports success: it reports success also for
// a commit that its synchronous standby has not received. An error that PostgreSQL reports is reliable.
func TestUnknownCommit(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	serialization := &pq.Error{Code: "40001"}
	cases := []struct {
		name    string
		ctx     context.Context
		err     error
		unknown bool
	}{
		{"committed", t.Context(), nil, false},
		{"reported as committed after the context has ended", ended, nil, true},
		{"the connection was lost", t.Context(), io.EOF, true},
		{"rolled back at the commit", t.Context(), serialization, false},
		{"refused at the commit", t.Context(), &pq.Error{Code: "23503"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := dialect.CommitError(c.ctx, c.err)
			if errors.Is(err, sqldb.ErrUnknownCommit) != c.unknown {
				t.Fatalf("CommitError: got %v, want ErrUnknownCommit: %t", err, c.unknown)
			}
			if !c.unknown && !errors.Is(err, c.err) {
				t.Fatalf("CommitError: got %v, want it to wrap %v", err, c.err)
			}
		})
	}
}
