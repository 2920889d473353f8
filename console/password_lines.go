package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
)

type user struct {
	hash   []byte
	rights []Right
}

// allRights are the rights of a person whose line names none.
var allRights = []Right{Look, Operate, Change}

// maxPassword is the length of a password, in bytes, after which bcrypt ignores the rest.
const maxPassword = 72

// maxCost is the largest cost of a hash: some seconds.
const maxCost = 15

// minCost is the least cost of a hash, a twentieth of a second, and newCost that of new hashes. They are variables for
// the tests alone, which would spend most of their time on hashes.
var minCost, newCost = 10, 12

// parsePeople reads the lines of OpenPasswords.
func parsePeople(r io.Reader) (*people, error) {
	p := &people{byName: map[string]user{}, right: map[string]time.Time{}}
	lines, cost := bufio.NewScanner(r), 0
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, u, err := parseUser(line)
		if err == nil {
			cost, err = p.add(name, u, cost)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the passwords: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the passwords: %w", err)
	}
	if len(p.byName) == 0 {
		return nil, errors.New("the passwords name nobody: nobody could sign in")
	}
	var err error
	p.dummy, err = bcrypt.GenerateFromPassword([]byte("nobody has this password"), cost)
	return p, err
}

// add adds a person, whose hash must cost as much as those before; 0 if there are none.
func (s *people) add(name string, u user, before int) (cost int, err error) {
	cost, err = bcrypt.Cost(u.hash)
	_, twice := s.byName[name]
	switch {
	case err != nil:
		err = fmt.Errorf("the hash of %q must be one of bcrypt: %w", name, err)
	case cost < minCost || cost > maxCost:
		err = fmt.Errorf("the hash of %q must have a cost of %d to %d, not %d", name, minCost, maxCost, cost)
	case before != 0 && cost != before:
		err = fmt.Errorf("the hash of %q must have the cost %d of the lines before, not %d: "+
			"the time of an answer would tell which names there are", name, before, cost)
	case twice:
		err = fmt.Errorf("%q is there twice", name)
	}
	s.byName[name] = u
	return cost, err
}

func parseUser(line string) (name string, u user, err error) {
	fields := strings.Split(line, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return "", user{}, errors.New("want NAME:HASH or NAME:HASH:RIGHTS")
	}
	name, u.hash, u.rights = fields[0], []byte(fields[1]), allRights
	if err := checkName(name); err != nil {
		return "", user{}, err
	}
	if len(fields) == 3 {
		u.rights, err = ParseRights(fields[2])
	}
	return name, u, err
}

// maxName is the length of a name in bytes: schedule_event has room for it.
const maxName = 100

// checkName refuses names that a line of the file cannot hold, and those that cannot stand in an event.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == 0x7f })
	if name == "" || len(name) > maxName || bad || strings.HasPrefix(name, "#") {
		return fmt.Errorf("the name %q must have 1 to %d bytes, no colon and no space, and not begin with #", name, maxName)
	}
	return nil
}

// ParseRights reads a list of rights with commas between them.
func ParseRights(text string) (rights []Right, err error) {
	for word := range strings.SplitSeq(text, ",") {
		r := Right(strings.TrimSpace(word))
		if !slices.Contains(allRights, r) {
			return nil, fmt.Errorf("the right %q must be look, operate or change", r)
		}
		rights = append(rights, r)
	}
	return rights, nil
}

func joinRights(rights []Right) string {
	names := make([]string, len(rights))
	for i, r := range rights {
		names[i] = string(r)
	}
	return strings.Join(names, ",")
}

// PasswordLine returns a line of the file that OpenPasswords reads. Without rights the person has all of them.
func PasswordLine(name, password string, rights ...Right) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if len(password) < 8 || len(password) > maxPassword {
		return "", fmt.Errorf("the password must have 8 to %d bytes, not %d", maxPassword, len(password))
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), newCost)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	line := []string{name, string(hash)}
	if len(rights) > 0 {
		line = append(line, joinRights(rights))
	}
	return strings.Join(line, ":"), nil
}
