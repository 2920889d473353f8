package proctest

import (
	"bufio"
	"fmt"
	"io"
)

// Gate makes a call in a process stay until the test has had its way with the process: see Process.Hold.
type Gate chan struct{}

const staying = "a call stays at the gate"

// NewGate returns the gate of this process. It listens to the standard input, until the input ends.
func NewGate(input io.Reader) Gate {
	g := make(Gate)
	go func() {
		for lines := bufio.NewScanner(input); lines.Scan(); {
			g <- struct{}{}
		}
	}()
	return g
}

// Pass returns false at once, unless the test holds the next call. Then it returns true when the test lets the call go.
func (g Gate) Pass() (held bool) {
	select {
	case <-g:
		fmt.Println(staying)
		<-g
		return true
	default:
		return false
	}
}
