package roster

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// confirmGone returns an error if a server without a reply still has its row, under a token of this process. Heartbeats
// do not wait for the cluster, so that their node may lag: it does not know a row that this process has just written on
// another node. The store waits, and its answer counts (F7). Without a cluster, the reply of the heartbeat is enough.
func (b Heartbeat) confirmGone(ctx context.Context, r *Roster, replies map[string]HeartbeatReply) error {
	if !r.WriteFence || len(replies) == len(b.Servers) {
		return nil
	}
	missing := slices.DeleteFunc(b.uuids(), func(uuid string) bool { _, ok := replies[uuid]; return ok })
	var rows int
	err := r.DB.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_server WHERE uuid IN (`+sqldb.Marks(len(missing))+`)
		AND beat_token IN (`+sqldb.Marks(len(b.OldTokens)+1)+`)`, slices.Concat(sqldb.Args(missing), sqldb.Args(b.OldTokens), []any{b.Token})...).Scan(&rows)
	if err != nil {
		return fmt.Errorf("look for servers without a reply: %w", err)
	}
	if rows > 0 {
		return errNodeLags
	}
	return nil
}
