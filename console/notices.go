package console

import (
	"crypto/rand"
	"net/url"
	"strings"
	"sync"
	"time"
)

// notices keeps what changes have done, until the page after the change has shown it. The address of that page has a
// number and not the text, so that a link cannot make the console show a text that it has not written.
type notices struct {
	mu   sync.Mutex
	list map[string]notice
}

// notice is the result of a change.
type notice struct {
	actor, text string
	until       time.Time
}

const (
	noticeFor  = 5 * time.Minute
	maxNotices = 1_000
)

func newNotices() *notices { return &notices{list: map[string]notice{}} }

// keep keeps a text for an actor, and returns its number.
func (s *notices) keep(actor, text string) (number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for number, one := range s.list {
		if len(s.list) >= maxNotices || now.After(one.until) {
			delete(s.list, number)
		}
	}
	number = rand.Text()
	s.list[number] = notice{actor, text, now.Add(noticeFor)}
	return number
}

// of returns the text with a number, if it was kept for the actor.
func (s *notices) of(actor, number string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.list[number]; one.actor == actor && time.Now().Before(one.until) {
		return one.text
	}
	return ""
}

// withNotice adds the number of a text to an address.
func withNotice(address, number string) string {
	sign := "?"
	if strings.Contains(address, "?") {
		sign = "&"
	}
	return address + sign + "notice=" + url.QueryEscape(number)
}

// address returns the address of a page of the console: address("queue", "task", "settle", "queue", "0").
func address(page string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	if len(query) == 0 {
		return page
	}
	return page + "?" + query.Encode()
}
