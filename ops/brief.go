package ops

import (
	"errors"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Brief returns an error that says in one short line why the roster could not be read. It wraps err, which says all.
func (c *Client) Brief(err error) error {
	const longest = 160
	text := sqldb.JoinLines(err.Error())
	if c.db.Class(err) == sqldb.Broken {
		cause := err
		for next := err; next != nil; next = errors.Unwrap(next) {
			cause = next
		}
		text = "the database cannot be reached: " + sqldb.JoinLines(cause.Error())
	}
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "..."
	}
	return briefError{err, text}
}

type briefError struct {
	error
	text string
}

// Error implements error.
func (e briefError) Error() string { return e.text }

// Unwrap returns the error that says all.
func (e briefError) Unwrap() error { return e.error }
