package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Reconnect makes sure that heartbeats have a connection. A new connection takes several round trips, for which a
// heartbeat that must renew a lease has no time.
func (r *Roster) Reconnect(ctx context.Context) error {
	if err := r.DB.Heartbeat.PingContext(ctx); err != nil {
		return fmt.Errorf("connect for heartbeats: %w", err)
	}
	return nil
}

// RoundTrip returns how long the database takes to answer a statement that does nothing, on the connection for
// heartbeats. It must not be called concurrently with SendHeartbeat.
func (r *Roster) RoundTrip(ctx context.Context) (time.Duration, error) {
	if err := r.Reconnect(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	err := r.DB.Heartbeat.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
	if err != nil {
		return 0, fmt.Errorf("measure a round trip: %w", err)
	}
	return time.Since(start), nil
}

// HeartbeatAge returns how long ago the database received the server's last heartbeat, by the database's clock. After
// ErrGone there is no row.
func (s Server) HeartbeatAge(ctx context.Context) (time.Duration, error) {
	var now, last time.Time
	err := s.roster.DB.QueryRow(ctx, `SELECT {now}, heartbeat_time FROM schedule_server WHERE uuid = ?`, s.uuid).
		Scan((*sqldb.Instant)(&now), (*sqldb.Instant)(&last))
	if sqldb.NoRows(err) {
		err = ErrGone
	}
	if err != nil {
		return 0, fmt.Errorf("read the last heartbeat of %s: %w", s.uuid, err)
	}
	return now.Sub(last), nil
}
