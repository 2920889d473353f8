package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// Passwords are the people who may sign in, with the bcrypt hashes of their passwords and their rights. They do not change:
// a new file needs a new Handler, which ends all sessions too.
type Passwords struct {
	byName map[string]user
	dummy  []byte // as costly as the hashes, for names that nobody has
}

type user struct {
	hash   []byte
	rights []Right
}

// allRights are the rights of a person whose line names none.
var allRights = []Right{Look, Operate, Change}

// maxPassword is the length of a password, in bytes, after which bcrypt ignores the rest.
const maxPassword = 72

// ParsePasswords reads lines of the form NAME:HASH or NAME:HASH:RIGHTS, such as
//
//	ann:$2a$12$...:look,operate
//
// HASH is a bcrypt hash, as PasswordLine or htpasswd -B makes it. RIGHTS is a list of look, operate and change; without
// it the person has all three. Empty lines and lines that begin with # mean nothing. An error names the line.
func ParsePasswords(r io.Reader) (*Passwords, error) {
	p := &Passwords{byName: map[string]user{}}
	highest := bcrypt.DefaultCost
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, u, err := parseUser(line)
		if _, twice := p.byName[name]; err == nil && twice {
			err = fmt.Errorf("%q is there twice", name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the passwords: %w", n, err)
		}
		cost, _ := bcrypt.Cost(u.hash) // parseUser has checked it
		p.byName[name], highest = u, max(highest, cost)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the passwords: %w", err)
	}
	if len(p.byName) == 0 {
		return nil, errors.New("the passwords name nobody: nobody could sign in")
	}
	dummy, err := bcrypt.GenerateFromPassword([]byte("nobody has this password"), highest)
	p.dummy = dummy
	return p, err
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
	if _, err := bcrypt.Cost(u.hash); err != nil {
		return "", user{}, fmt.Errorf("the hash of %q must be one of bcrypt: %w", name, err)
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

// PasswordLine returns a line for ParsePasswords. Without rights the person has all of them.
func PasswordLine(name, password string, rights ...Right) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	if len(password) < 8 || len(password) > maxPassword {
		return "", fmt.Errorf("the password must have 8 to %d bytes, not %d", maxPassword, len(password))
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), 12)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	line := []string{name, string(hash)}
	if len(rights) > 0 {
		line = append(line, joinRights(rights))
	}
	return strings.Join(line, ":"), nil
}

// check returns the rights of a person who gives a password. It takes as long for names that nobody has.
func (p *Passwords) check(name, password string) (rights []Right, ok bool) {
	u, known := p.byName[name]
	if !known {
		u.hash = p.dummy
	}
	if bcrypt.CompareHashAndPassword(u.hash, []byte(password)) != nil || !known || len(password) > maxPassword {
		return nil, false
	}
	return u.rights, true
}
