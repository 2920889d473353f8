package center

import "context"

// FenceStatement is the fence for a program of any language, which has the SQL and no Center (F12).
type FenceStatement struct {
	SQL  string // with the marks of the database's protocol: $1, $2 or ?
	Args []any  // one for each mark, in their order; each is a string or an int64
}

// FenceStatementOf returns the statement by which another program makes a transaction of its own commit only while the
// server owns the queue of the batch that ctx carries. The program runs it first in that transaction, in the database
// that has the items of the queue. It must change exactly one row, and otherwise the program must roll back. Until the
// transaction ends, no other server can take the queue over, and other transactions that run it wait.
//
// Unlike Fence, the statement saves no cursor, because the program may commit and then report that an item has failed.
// On SQLite the transaction must begin with BEGIN IMMEDIATE.
//
// FenceStatementOf returns ErrNoBatch if ctx does not come from Execute.
func FenceStatementOf(ctx context.Context) (s FenceStatement, err error) {
	b, err := batchOf(ctx)
	if err != nil {
		return s, err
	}
	rows := b.rows()
	if b.data != nil {
		if err := b.data.open(ctx); err != nil { // before, its dialect may not be known
			return s, err
		}
		rows = b.data.fence(b.TaskType, b.Server)
	}
	s.SQL, s.Args = rows.Statement(b.Queue)
	return s, nil
}
