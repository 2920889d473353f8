-- What servers report of themselves: the settings that their program gives, and when their last error was. And a
-- view that finds servers by their uuids alone, and an index for lists of events of a rare kind.
-- Oldest companion: the library version that brings migration 2. It works beside this one: it leaves the new columns
-- empty, and does not know of runs, which migration 3 brought.

-- +goose Up
ALTER TABLE schedule_server ADD COLUMN given_settings text; -- JSON object of what the program gives explicitly, as text; NULL: it does not tell
ALTER TABLE schedule_server ADD COLUMN last_error_at timestamptz(6); -- when last_error was, as the server estimates by this clock
ALTER TABLE schedule_server_history ADD COLUMN given_settings text;
ALTER TABLE schedule_server_history ADD COLUMN last_error_at timestamptz(6);
CREATE INDEX idx_schedule_event_kind ON schedule_event (kind, own_sign, event_id);
UPDATE schedule_schema_lock SET oldest_companion = 2;

-- Servers are joined by their key alone. PostgreSQL, until the tables are analyzed, takes the index on task_type and
-- own_sign for as good, and then reads all servers for each queue.
CREATE OR REPLACE VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       round(extract(epoch FROM statement_timestamp() - c.heartbeat_time), 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       round(extract(epoch FROM statement_timestamp() - q.cur_since), 3) AS held_s,
       round(extract(epoch FROM statement_timestamp() - q.req_since), 3) AS requested_s,
       q.epoch, q.cursor_value,
       CASE WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL OR c.task_type <> q.task_type OR c.own_sign <> q.own_sign THEN 'ORPHAN'
            WHEN c.heartbeat_time < statement_timestamp() - c.judge_dead_interval_ms * interval '1 millisecond' THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server
  LEFT JOIN schedule_server r ON r.uuid = q.req_server;
