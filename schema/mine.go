package schema

import (
	"crypto/md5" //nolint:gosec // it spreads keys over queues, and protects nothing
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
)

// Mine returns a condition of SQL that is true for the rows of one numbered queue. key is the SQL of the whole number
// by which the rows are divided, such as "id" or "o.customer_id". The condition has two marks, whose values are the
// Total and the Queue.Index of a [processor.Selection], in this order. On PostgreSQL they are $first and $first+1, and
// elsewhere both are ?:
//
//	c.Dialect().Mine("id", 1) // COALESCE(ABS(mod(CAST(id AS bigint), $1)), 0) = $2
//
// Each row belongs to exactly one queue of a total (N4), whatever the database holds: a negative number belongs to the
// queue of its absolute value, as [processor.QueueOf] says, and NULL to queue 0. It is the queue of mod(id, total)
// where that is not negative. A number with a fraction is rounded, by SQLite cut. For a text, PostgreSQL returns an
// error, and the other databases take it for 0: use MineHash for it.
//
// key becomes a part of the statement as it is. It must be the program's own text and come from nowhere else. On
// PostgreSQL the select needs an index with MineIndex.
//
// [processor.Selection]: https://pkg.go.dev/github.com/dutyrota/rota/processor#Selection
// [processor.QueueOf]: https://pkg.go.dev/github.com/dutyrota/rota/processor#QueueOf
func (d Dialect) Mine(key string, first int) string {
	f := divisions[d.Family()]
	return f.mine(f.number, key, first)
}

// MineHash is Mine for keys of other types: texts, UUIDs, bytes, dates of SQLite. It divides the rows by [Dialect.Hash]
// of the key, as SQL computes it. NULL belongs to queue 0. Keys are equal if their bytes are: use lower(region) where a
// and A must be in one queue. A key whose text depends on a setting of the session, such as a time with a zone or a
// floating-point number, is none: two sessions would have it in two queues.
func (d Dialect) MineHash(key string, first int) string {
	f := divisions[d.Family()]
	return f.mine(f.hash, key, first)
}

// MineIndex returns what Mine compares with the number of a queue, for a total that stands in the text. On PostgreSQL,
// an index on it finds the rows of one queue, also for a select in which the total is bound:
//
//	"CREATE INDEX orders_work ON orders (state, (" + schema.Postgres.MineIndex("id", 8) + "), id)"
//
// Without that index PostgreSQL, which has no statistics of the expression, takes a queue for a two-hundredth of the
// rows. If these are fewer than the limit of the select, it reads and sorts the whole table rather than the first rows
// of an index on (state, id). Another total needs another index. The other databases use such an index only where the
// total stands in the statement. They read an index on (state, id) instead and pass the entries of the other queues.
func (d Dialect) MineIndex(key string, total int) string {
	return fmt.Sprintf(divisions[d.Family()].number, key, strconv.Itoa(total))
}

// MineHashIndex is MineIndex for MineHash.
func (d Dialect) MineHashIndex(key string, total int) string {
	return fmt.Sprintf(divisions[d.Family()].hash, key, strconv.Itoa(total))
}

// Hash returns the number by which MineHash divides the rows with a key: a text in UTF-8, a UUID as the database writes
// it (PostgreSQL and MariaDB: lower case with hyphens), or bytes. It will not change. [processor.QueueOf] of it is the
// queue, and its decimal digits are a key for Wake. Databases that have no function in common compute different ones:
// on PostgreSQL it is the first four bytes of the MD5 of the text, on MySQL and MariaDB the CRC-32, as the function
// CRC32 of these databases returns it. SQLite has no hash function, so there it is a polynomial over the bytes, in
// plain SQL that every tool can run.
//
// MySQL and MariaDB hash the bytes of the column's character set: in another one than utf8mb4, characters beyond ASCII
// have other bytes than in Go. PostgreSQL hashes bytea by its text, \x and hexadecimal digits.
//
// [processor.QueueOf]: https://pkg.go.dev/github.com/dutyrota/rota/processor#QueueOf
func (d Dialect) Hash(key string) int64 { return divisions[d.Family()].of(key) }

// division is how the rows are divided in the SQL of a family of databases.
type division struct {
	// number and hash are the number of the queue to which a row belongs: %[1]s is the key and %[2]s the mark of the
	// total. Each has the key once, so that an index on the expression may serve it.
	number, hash string
	dollars      bool // marks are $1 and $2
	of           func(key string) int64
}

func (f division) mine(queue, key string, first int) string {
	total, index := "?", "?"
	if f.dollars {
		total, index = fmt.Sprintf("$%d", first), fmt.Sprintf("$%d", first+1)
	}
	return fmt.Sprintf(queue+" = %[3]s", key, total, index)
}

// The absolute value of a remainder was taken rather than the remainder that is never negative, mod(mod(id, n) + n, n):
// it has the total once, and a queue that is split has the same rows as its parts under both. What it is taken of has a
// remainder, so that the least integer does not overflow. SQLite's mod() computes with floating-point numbers, so that
// ids above 2^53 would share a queue with their neighbours; its operator does not.
var divisions = map[Dialect]division{
	Postgres: {
		number:  "COALESCE(ABS(mod(CAST(%[1]s AS bigint), %[2]s)), 0)",
		hash:    "COALESCE(mod(CAST(CAST('x' || substr(md5(CAST(%[1]s AS text)), 1, 8) AS bit(32)) AS bigint), %[2]s), 0)",
		dollars: true,
		of: func(key string) int64 {
			sum := md5.Sum([]byte(key)) //nolint:gosec // as above
			return int64(binary.BigEndian.Uint32(sum[:]))
		},
	},
	MySQL: {
		number: "COALESCE(ABS(mod(CAST(%[1]s AS SIGNED), %[2]s)), 0)",
		hash:   "COALESCE(mod(CRC32(%[1]s), %[2]s), 0)",
		of:     func(key string) int64 { return int64(crc32.ChecksumIEEE([]byte(key))) },
	},
	SQLite: {
		number: "COALESCE(ABS(CAST(%[1]s AS INTEGER) %% %[2]s), 0)",
		// NULL has no digits, as the empty text
		hash: "(WITH RECURSIVE rota_hash(digits, sum) AS (SELECT hex(%[1]s), 0 UNION ALL SELECT substr(digits, 3), " +
			"(sum * 1000003 + 16 * instr('0123456789ABCDEF', substr(digits, 1, 1)) + " +
			"instr('0123456789ABCDEF', substr(digits, 2, 1))) %% 2147483647 FROM rota_hash WHERE digits <> '') " +
			"SELECT sum FROM rota_hash WHERE digits = '') %% %[2]s",
		of: func(key string) (sum int64) {
			for _, b := range []byte(key) {
				sum = (sum*1000003 + int64(b) + 17) % (1<<31 - 1) // instr counts from 1
			}
			return sum
		},
	},
}
