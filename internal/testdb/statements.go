package testdb

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Statements returns the statements in the bytes that a client has sent to PostgreSQL, without their parameters.
func Statements(sent []byte) (list []string) {
	for len(sent) >= 5 {
		end := min(len(sent), 1+int(binary.BigEndian.Uint32(sent[1:])))
		body := sent[5:end]
		switch sent[0] {
		case 'P': // the name of the statement comes first
			_, body, _ = bytes.Cut(body, []byte{0})
			fallthrough
		case 'Q':
			text, _, _ := strings.Cut(string(body), "\x00")
			list = append(list, strings.Join(strings.Fields(text), " "))
		}
		sent = sent[end:]
	}
	return list
}
