package roster

import (
	"context"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Statistics are what people read about a server: in its row, in lists and on the console. No decision about a lease or
// the owner of a queue depends on them. Times are by the database's clock, as the caller estimates it; a zero time
// means never.
type Statistics struct {
	UUID sqldb.Key `db:"id"`

	FetchCount     int64         `db:"new_fetch_count"`
	FetchItemCount int64         `db:"new_fetch_item_count"`
	SuccessCount   int64         `db:"new_success_count"`
	FailureCount   int64         `db:"new_failure_count"`
	SkipCount      int64         `db:"new_skip_count"`
	ExecuteTime    time.Duration `db:"new_execute_ms"`
	InFlight       int64         `db:"new_in_hand"`
	LastFetch      time.Time     `db:"new_last_fetch_time"`
	OldestInFlight time.Time     `db:"new_oldest_in_hand_since"` // zero if nothing is in flight
	LastError      string        `db:"new_last_error"`
	LastErrorAt    time.Time     `db:"new_last_error_at"`
	FailingSince   time.Time     `db:"new_failing_since"`       // zero unless the calls of the dealer do nothing but fail
	FailedCalls    int64         `db:"new_failed_calls"`        // since an item last succeeded
	NextRunStart   time.Time     `db:"new_next_run_start_time"` // of the permit window
	NextRunEnd     time.Time     `db:"new_next_run_end_time"`
}

// StatisticsOf returns the statistics of a server that has done nothing yet.
func StatisticsOf(uuid string) Statistics { return Statistics{UUID: sqldb.Key(uuid)} }

// newColumn begins the name of a column with the value that another column is to have. The statement reads both.
const newColumn = "new_"

// Equal reports whether two statistics say the same. The times are estimates, which a second does not change.
func (s Statistics) Equal(other Statistics) bool {
	for _, t := range []struct{ own, other *time.Time }{
		{&s.LastFetch, &other.LastFetch},
		{&s.OldestInFlight, &other.OldestInFlight},
		{&s.LastErrorAt, &other.LastErrorAt},
		{&s.FailingSince, &other.FailingSince},
		{&s.NextRunStart, &other.NextRunStart},
		{&s.NextRunEnd, &other.NextRunEnd},
	} {
		if t.own.IsZero() == t.other.IsZero() && t.own.Sub(*t.other).Abs() < time.Second {
			*t.own = *t.other
		}
	}
	return s == other
}

// WriteStatistics writes the statistics of servers into their rows, with one statement in autocommit. It is apart from
// the heartbeat, because it may fail or wait without costing a server its lease (S1): a database may refuse the text of
// an error. It is tried once, because the next ones supersede it. A server without a row is left out.
func (r *Roster) WriteStatistics(ctx context.Context, servers ...Statistics) error {
	if len(servers) == 0 {
		return nil
	}
	var set []string
	for i := range servers {
		servers[i].LastError = sqldb.Clean(servers[i].LastError)
	}
	for _, f := range sqldb.Fields(servers[0]) {
		if column, found := strings.CutPrefix(f.Column, newColumn); found {
			set = append(set, column+" = v."+f.Column)
		}
	}
	query, args, err := sqldb.UpdateServers(r.DB.Dialect, servers, strings.Join(set, ", "), "1 = 1")
	if err == nil {
		_, err = r.DB.Exec(ctx, query, args...)
	}
	return sqldb.Wrap(err, "write the statistics of %d workers", len(servers))
}
