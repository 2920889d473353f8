//go:build !race

package manager

const raced = false
