package mysql

import (
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// utcIfUTF8 is the value of time_zone on each connection. Where the connection's character set is not utf8mb4, it is
// the name of no time zone, so that the server refuses the connection's settings: the question costs no round trip.
// The URL alone does not decide about the character set: init_connect can change it, and a server may disregard the
// handshake.
const utcIfUTF8 = `IF(@@character_set_client = 'utf8mb4' AND @@character_set_connection = 'utf8mb4', '+00:00',
	CONCAT('` + charsetMark + `', @@character_set_client, ' ', @@character_set_connection))`

// charsetMark begins the time zone that utcIfUTF8 makes of two character sets.
const charsetMark = "charset "

// unknownTimeZone is the number of the server's answer to such a time zone.
const unknownTimeZone = 1298

// charsetError returns the error of a connection whose character set utcIfUTF8 does not accept, otherwise nil. where is
// what sets the character set.
func charsetError(err error, where string) error {
	var e *driver.MySQLError
	if !errors.As(err, &e) || e.Number != unknownTimeZone {
		return nil
	}
	_, sets, marked := strings.Cut(e.Message, "'"+charsetMark)
	client, connection, two := strings.Cut(strings.TrimSuffix(sets, "'"), " ")
	if !marked || !two {
		return nil
	}
	return fmt.Errorf("the connection's character set is %s (character_set_client) and %s (character_set_connection), "+
		"must be utf8mb4: "+
		"in other character sets a parameter can end its quotes; charset=utf8mb4 in %s sets it", client, connection, where)
}
