package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// beProgram is the argument that makes the test binary a program of a worker.
const beProgram = "be-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == beProgram {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is a program that does what the keys of its items say.
func serve() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var b struct {
			ID    string `json:"batch"`
			Items []struct {
				Key string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
		results := make([]string, 0, len(b.Items))
		for _, item := range b.Items {
			act(item.Key)
			results = append(results, fmt.Sprintf(`{"key":%q,"result":"done"}`, item.Key))
		}
		fmt.Printf(`{"batch":%q,"items":[%s]}`+"\n", b.ID, strings.Join(results, ","))
	}
}

func act(key string) {
	verb, rest, _ := strings.Cut(key, " ")
	switch verb {
	case "exit":
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	case "sleep":
		d, _ := time.ParseDuration(rest)
		time.Sleep(d)
	case "child": // a grandchild that holds the pipes
		child := exec.Command("sleep", "3600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(rest, fmt.Append(nil, child.Process.Pid), 0o600); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "env":
		fmt.Fprintln(os.Stderr, "env", strings.Join(os.Environ(), " "))
	case "say":
		fmt.Fprintln(os.Stderr, rest)
	case "mumble": // in one long line
		fmt.Fprintln(os.Stderr, strings.Repeat("y", 100_000))
	case "print":
		fmt.Println(rest)
	case "flood":
		for line := strings.Repeat("x", 1<<20); ; {
			fmt.Print(line)
		}
	}
}

// row is a row without columns.
type row struct{}

func (row) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

// batch returns a batch of items with these keys.
func batch(keys ...string) *Batch {
	b := &Batch{TaskType: "settle", OwnSign: "TEST", Queue: "1", Epoch: 7, Server: "web1:1:00000001"}
	for _, key := range keys {
		b.Items = append(b.Items, Item{key, row{}})
	}
	return b
}

// errorText returns the text of an error, empty for none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
