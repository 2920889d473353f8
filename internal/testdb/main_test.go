package testdb

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the main function of the process that TestServerEndsWithItsOwner starts.
func TestMain(m *testing.M) {
	if kind := os.Getenv("TESTDB_OWN"); kind != "" {
		own(kind)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(DropReused))
}

// own starts a server, prints its URL and directory, and returns at the end of its input.
func own(kind string) {
	server, err := StartServer(kind)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(server.URL(), server.dir)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
