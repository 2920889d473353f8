package sqldealer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/processor"
)

// fakeProgram fails the items that it has errors for.
type fakeProgram struct {
	outcome program.Outcome
	err     error
	batch   *program.Batch // the last one
}

func (f *fakeProgram) Ask(_ context.Context, b *program.Batch) (*program.Reply, error) {
	f.batch = b
	return &program.Reply{Outcome: f.outcome}, f.err
}

// programDealer returns a dealer whose rows a program executes.
func (s shop) programDealer(c config.SQLDealer, p program.Program) *Dealer {
	s.Helper()
	d, err := newDealer(config.Task{
		Name: "settle", Settings: center.Settings{Queues: 2}, SQL: c, Program: config.Program{Command: []string{"x"}},
	}, s.Dialect())
	if err != nil {
		s.Fatal(err)
	}
	d.Call(p)
	d.Use(s.DB())
	return d
}

// errDown is the error of a program as a whole.
var errDown = errors.New("the program is down")

// A program gets all columns of the rows. Those that it has done are marked, and the others fail by name.
func TestProgram(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		p := &fakeProgram{outcome: program.Outcome{"3": errors.New("no such account")}}
		d := s.programDealer(settleOrders, p)
		rows := s.selectRows(d)
		err := d.Execute(s.batch(7), rows)
		if want := "items failed: 1; no such account"; errorText(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
		s.want("SELECT id, state, times FROM orders WHERE id IN (1, 3, 7) ORDER BY id", "1 SETTLED 1", "3 NEW 0", "7 SETTLED 1")
		text, err := json.Marshal(p.batch.Items)
		if err != nil {
			t.Fatal(err)
		}
		const want = `[{"key":"1","row":{"id":1,"state":"NEW"}},{"key":"3","row":{"id":3,"state":"NEW"}},{"key":"7","row":{"id":7,"state":"NEW"}}]`
		if string(text) != want {
			t.Errorf("the items are\n%s\nwant\n%s", text, want)
		}
		if b := p.batch; b.TaskType != "settle" || b.OwnSign != "TEST" || b.Queue != "1" || b.Epoch != 7 || b.Server != owner || b.Parameter != "p'1" {
			t.Errorf("the batch is %+v", b)
		}
		p.err = errDown
		if err := d.Execute(s.batch(7), rows); !errors.Is(err, errDown) {
			t.Errorf("error %v, want %v", err, errDown)
		}
		s.want("SELECT id FROM orders WHERE times > 1 OR id = 3 AND times > 0")
	})
}

// A program gets the key of the run whose rows it executes, and its trace.
func TestProgramRun(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		p := &fakeProgram{}
		d := s.programDealer(settleOrders, p)
		of := selection()
		of.Run = &processor.Run{ID: "a", Key: "2026-11-21", TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
		rows, err := d.Select(t.Context(), of)
		if err == nil {
			err = d.Execute(s.batch(7), rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		if b := p.batch; b.RunKey != of.Run.Key || b.TraceParent != of.Run.TraceParent {
			t.Errorf("the batch is %+v", b)
		}
	})
}

// Without execute, the program does all the work, and a row that the select returns twice is one item.
func TestProgramWithoutExecute(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		c := settleOrders
		c.Execute = ""
		p := &fakeProgram{}
		d := s.programDealer(c, p)
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows := s.selectRows(d)
		if err := d.Execute(s.batch(7), append(rows, rows[0])); err != nil {
			t.Fatal(err)
		}
		if n := len(p.batch.Items); n != 3 {
			t.Errorf("%d items, want 3", n)
		}
		p.outcome = program.Outcome{"1": errDown}
		if err := d.Execute(s.batch(7), append(rows, rows[0])); !strings.HasPrefix(errorText(err), "items failed: 2;") {
			t.Errorf("a row that is there twice: error %v", err)
		}
		s.want("SELECT count(*) FROM orders WHERE state = 'SETTLED'", "0")
	})
}

// The fencing statement of a batch changes a row only under the epoch of the batch. A program that says that it is
// fenced is believed if the fence says so, too.
func TestProgramFence(t *testing.T) {
	testdb.EachReused(t, func(t *testing.T, url string) {
		s := openShop(t, url)
		s.exec(orders...)
		p := &fakeProgram{}
		d := s.programDealer(settleOrders, p)
		rows := s.selectRows(d)
		for epoch, want := range map[int64]int64{7: 1, 6: 0} {
			_ = d.Execute(s.batch(epoch), rows) // under the epoch 6 it fails to mark the rows
			fence := p.batch.Fence
			result, err := s.DB().ExecContext(t.Context(), fence.SQL, fence.Args...)
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := result.RowsAffected(); n != want {
				t.Errorf("epoch %d: %d rows, want %d", epoch, n, want)
			}
			if strings.Contains(fence.SQL, "rota_") {
				t.Errorf("the statement has a function that only Rota has: %s", fence.SQL)
			}
			marks := regexp.MustCompile(`\$\d+|\?`)
			if n := len(marks.FindAllString(fence.SQL, -1)); n != len(fence.Args) || strings.ContainsAny(marks.ReplaceAllString(fence.SQL, ""), "$?") {
				t.Errorf("a program cannot replace the %d marks by its own: %s", n, fence.SQL)
			}
		}
		p.err = program.ErrFenced
		if err := d.Execute(s.batch(6), rows); !errors.Is(err, center.ErrFenced) {
			t.Errorf("the batch is fenced: error %v", err)
		}
		if err := d.Execute(s.batch(7), rows); errors.Is(err, center.ErrFenced) || !errors.Is(err, program.ErrFenced) {
			t.Errorf("the program is wrong: error %v", err)
		}
	})
}

// A cursor does not pass a row that has failed, so nothing of its batch is marked.
func TestProgramWithCursor(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.exec(orders...)
	p := &fakeProgram{outcome: program.Outcome{"3": errDown}}
	d := s.programDealer(config.SQLDealer{
		Select:  "SELECT id FROM orders WHERE {{index}} = 1 AND id > {{cursor}} ORDER BY id LIMIT {{limit}}",
		Execute: "UPDATE orders SET times = times + 1 WHERE id IN ({{keys}})", Key: []string{"id"}, CursorStart: zero, CommitsInOrder: true,
	}, p)
	rows, err := d.Use(s.DB()).Select(t.Context(), selection())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Execute(s.batch(7), rows); !errors.Is(err, errDown) {
		t.Errorf("error %v, want %v", err, errDown)
	}
	s.want("SELECT id FROM orders WHERE times > 0")
	p.outcome = nil
	if err := d.Execute(s.batch(7), rows); err != nil {
		t.Error(err)
	}
	s.want("SELECT id FROM orders WHERE times = 1 ORDER BY id", "1", "2", "3")
}

// With an order key, a batch of a program has one row of each key, as a failure of the batch undoes nothing.
func TestProgramIsNotAtomic(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	c := settleOrders
	c.OrderKey = "state"
	for want, dealer := range map[bool]*Dealer{true: s.dealer(c), false: s.programDealer(c, &fakeProgram{})} {
		if dealer.Atomic() != want {
			t.Errorf("atomic: %t, want %t", !want, want)
		}
	}
}

// Two columns of one name would be one in the row of a program.
func TestProgramColumnsDiffer(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.exec(orders...)
	d := s.programDealer(config.SQLDealer{
		Select: "SELECT id, times, state AS times FROM orders WHERE {{index}} = 1 LIMIT {{limit}}", Key: []string{"id"},
	}, &fakeProgram{})
	_, err := d.Select(t.Context(), selection())
	if want := `run select: the result has two columns "times": give one of them another name`; errorText(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A dealer without a program does not execute its rows.
func TestProgramIsMissing(t *testing.T) {
	s := openShop(t, testdb.URL(t, testdb.SQLite))
	s.exec(orders...)
	d := s.programDealer(settleOrders, nil)
	d.program = nil
	if err := d.Execute(s.batch(7), s.selectRows(d)); errorText(err) != "tasks.settle: the program is missing" {
		t.Errorf("error %v", err)
	}
}

// The values of columns as a program gets them.
func TestRowJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for want, v := range map[string]any{
		`null`: nil, `true`: true, `-7`: int64(-7), `9007199254740993`: int64(9007199254740993), `18446744073709551615`: uint64(math.MaxUint64),
		`1.5`: 1.5, `1e+300`: 1e300, `"NaN"`: math.NaN(), `"+Inf"`: math.Inf(1), `"it's \"x\"\n"`: "it's \"x\"\n", `""`: "", `"日本"`: "日本",
		`"\\x00ff"`: []byte{0, 255}, `"\ufffd"`: "\xff", `"2026-01-02T03:04:05.000006Z"`: at, `12.34`: float32(12.34),
	} {
		text, err := json.Marshal(Row{names: []string{`"k":`}, values: []any{v}})
		if got := fmt.Sprintf(`{"k":%s}`, want); err != nil || string(text) != got {
			t.Errorf("%v: %s, %v, want %s", v, text, err, got)
		}
	}
}
