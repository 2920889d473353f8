// Package wrappertest fences transactions of sqlx and bun. It is a module of its own, so that neither gets into the go.sum
// of users. Its examples show a dealer over each.
package wrappertest
