package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
)

const (
	// pingEvery is the pause between two pings of a connection that listens. A ping that has no reply by the next one
	// ends the connection: nothing else notices that its network is dead.
	pingEvery = 30 * time.Second

	// heardBuffer is how many notifications wait for their receiver.
	heardBuffer = 64
)

var errListenerLost = errors.New("the connection that listens is lost")

// listen receives notifications through a connection of lib/pq (sqldb.Database.Listen).
func listen(t target) func(ctx context.Context, channel string, ready func(), got func(payload string)) error {
	return func(ctx context.Context, channel string, ready func(), got func(payload string)) error {
		notifications := make(chan *pq.Notification, heardBuffer)
		conn, err := pq.NewListenerConn(t.listenerDSN(), notifications)
		if err != nil {
			return fmt.Errorf("connect to listen: %w", err)
		}
		defer func() {
			_ = conn.Close() // it may be closed
			for range notifications {
				continue // until its goroutine has ended
			}
		}()
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		if _, err := conn.Listen(channel); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		ready()
		return receive(ctx, conn, notifications, got)
	}
}

// receive passes notifications on until ctx is done or the connection is lost.
func receive(ctx context.Context, conn *pq.ListenerConn, notifications <-chan *pq.Notification,
	got func(payload string),
) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var pinged chan error
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n, open := <-notifications:
			if !open {
				return cmp.Or(ctx.Err(), conn.Err(), errListenerLost)
			}
			got(n.Extra)
		case err := <-pinged:
			if pinged = nil; err != nil {
				return err
			}
		case <-ping.C:
			if pinged != nil {
				return errListenerLost
			}
			pinged = make(chan error, 1)
			go func() { pinged <- conn.Ping() }() // it ends when the connection is closed
		}
	}
}

// listenerDSN returns what lib/pq connects to, with what connector and parse set beside the URL.
func (t target) listenerDSN() string {
	text := dsn(t.url) + " sslmode='" + string(t.config.SSLMode) + "' connect_timeout='" +
		fmt.Sprint(max(1, int(cmp.Or(t.config.ConnectTimeout, listenerTimeout).Seconds()))) + "'"
	if t.config.ApplicationName == "" {
		text += " application_name='rota'"
	}
	if a := t.config.TargetSessionAttrs; a != "" {
		text += " target_session_attrs='" + string(a) + "'"
	}
	return text
}

// listenerTimeout bounds how long it takes to connect.
const listenerTimeout = 5 * time.Second
