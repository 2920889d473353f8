package testdb

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the process that TestServerEndsWithItsOwner starts.
func TestMain(m *testing.M) {
	if kind := os.Getenv("TESTDB_OWN"); kind != "" {
		own(kind)
		return
	}
	goleak.VerifyTestMain(m)
}

// own starts a server, tells its URL and directory, and ends in the normal way when its input does.
func own(kind string) {
	server, err := StartServer(kind)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.URL(), server.dir)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
