//go:build tools

// Package tidb names the server of TiDB, which make engine-tidb builds for tests. It is a module of its own: no user of
// Rota depends on it.
package tidb

import _ "github.com/pingcap/tidb/cmd/tidb-server"
