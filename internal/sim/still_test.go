package sim

import (
	"fmt"
	"time"
)

// stillAfter is how much real time the play of a history may take. It usually takes a second.
const stillAfter = 10 * time.Minute

// notStill ends the program, with the history and all goroutines, if a play takes so long that simulated time must stand
// still: a goroutine waits for something that the bubble does not know, such as a mutex that is held during a statement.
// The caller calls done after the play.
func notStill(h *history) (done func() bool) {
	return time.AfterFunc(stillAfter, func() {
		panic(fmt.Sprintf("a history does not end, because a goroutine waits for what no time ends:\n%s", h))
	}).Stop
}
