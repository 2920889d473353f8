//go:build !linux

package witness

import "context"

// Directory does not exist on this system.
type Directory struct{}

// Lock does not exist on this system.
type Lock struct{ ID string }

// Open returns ErrUnsupported.
func Open(string) (*Directory, error) { return nil, ErrUnsupported }

// Shared returns false.
func (d *Directory) Shared() bool { return false }

// Hold returns ErrUnsupported.
func (d *Directory) Hold() (*Lock, error) { return nil, ErrUnsupported }

// Dead returns ErrUnsupported.
func (d *Directory) Dead() ([]string, error) { return nil, ErrUnsupported }

// Watch returns at once.
func (d *Directory) Watch(context.Context, *Lock, func(error)) {}

// Release does nothing.
func (l *Lock) Release() {}
