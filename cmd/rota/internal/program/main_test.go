package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

// serve is a program that does what the keys of its items say. Its second argument is what it does wrong.
func serve() {
	fault := strings.Join(os.Args[2:], " ")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var b request
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
		fmt.Println(b.answer(fault))
	}
	switch fault {
	case "chatty":
		fmt.Println("bye")
	case "stays":
		time.Sleep(time.Hour)
	case "fails":
		os.Exit(4)
	}
}

// request is what the program reads of a batch.
type request struct {
	Op    string
	ID    string `json:"batch"`
	Fence Fence
	Items []struct{ Key string }

	Index int `json:"queue_index"`
	Total int `json:"queue_total"`
	Limit int
	Held  []string
	Queue []struct{ Queue string } `json:"queues"`
}

// answer returns the reply.
func (b *request) answer(fault string) string {
	reply := map[string]any{"batch": b.ID}
	switch {
	case b.Op == OpSelect:
		reply["items"] = b.selects(fault)
	case b.Op == OpBacklog && fault != "counts none":
		reply["count"] = 20
	case b.Op == OpPeek:
		var ids []string
		for _, q := range b.Queue {
			ids = append(ids, q.Queue)
		}
		if fault == "blind" {
			ids = ids[:1]
		}
		reply["queues"] = ids
	case b.Op != OpExecute && b.Op != OpDiscard && fault != "any op":
		reply["error"] = "unknown op"
	case strings.Contains(b.Fence.SQL, "1 = 0") && fault != "no fence":
		reply["fenced"] = true
	default:
		results := make([]map[string]string, 0, len(b.Items))
		for i, item := range b.Items {
			act(item.Key)
			if fault == "trims" {
				item.Key = strings.TrimSpace(item.Key)
			}
			if fault != "forgets" || i != 9 {
				results = append(results, map[string]string{"key": item.Key, "result": "done"})
			}
		}
		reply["items"] = results
	}
	text, _ := json.Marshal(reply)
	return string(text)
}

// selects returns the numbers below 20 of a queue. The order key of a number is that of its tens in the queue.
func (b *request) selects(fault string) []map[string]any {
	items := []map[string]any{}
	for i := range 20 {
		orderKey := fmt.Sprintf("%d of %d", i/10, b.Index)
		if fault == "one order" {
			orderKey = "one"
		}
		held := slices.Contains(b.Held, orderKey) || fault == "drops" && len(b.Held) > 0
		if held || i%b.Total != b.Index && fault != "shares" || len(items) == b.Limit && fault != "greedy" {
			continue
		}
		items = append(items, map[string]any{"key": fmt.Sprint(i), "row": map[string]any{"n": i}, "order_key": orderKey})
	}
	return items
}

// shouted is the number of lines of the item "shout".
const shouted = 50_000

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
	case "shout": // more lines than are logged
		fmt.Fprint(os.Stderr, strings.Repeat("z\n", shouted))
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
		b.Items = append(b.Items, Item{Key: key, Row: row{}})
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
