-- What servers report of themselves: the settings that their program gives, and when their last error was. And a
-- view that finds servers by their uuids alone, and an index for lists of events of a rare kind.
-- Oldest companion: the library version that brings migration 2. It works beside this one: it leaves the new columns
-- empty, and does not know of runs, which migration 3 brought.
--
-- Each column and index is looked for first, as in migration 2, so that a migration that was killed half way can be run again.

-- +goose Up
-- given_settings: JSON object of what the program gives explicitly, as text; NULL: it does not tell
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_server' AND column_name = 'given_settings') > 0,
    'DO 0', 'ALTER TABLE schedule_server ADD COLUMN given_settings TEXT NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
-- last_error_at: when last_error was, as the server estimates by this clock
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_server' AND column_name = 'last_error_at') > 0,
    'DO 0', 'ALTER TABLE schedule_server ADD COLUMN last_error_at DATETIME(6) NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_server_history' AND column_name = 'given_settings') > 0,
    'DO 0', 'ALTER TABLE schedule_server_history ADD COLUMN given_settings TEXT NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_server_history' AND column_name = 'last_error_at') > 0,
    'DO 0', 'ALTER TABLE schedule_server_history ADD COLUMN last_error_at DATETIME(6) NULL');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'schedule_event' AND index_name = 'idx_schedule_event_kind') > 0,
    'DO 0', 'CREATE INDEX idx_schedule_event_kind ON schedule_event (kind, own_sign, event_id)');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
UPDATE schedule_schema_lock SET oldest_companion = 2;

-- Servers are joined by their key alone: see postgres.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW schedule_assignment AS
SELECT q.task_type, q.own_sign, q.queue_id,
       q.cur_server, c.host_name AS cur_host, c.pid AS cur_pid, c.state AS cur_state,
       ROUND(TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) / 1000000, 3) AS cur_heartbeat_age_s,
       q.req_server, r.host_name AS req_host,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.cur_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS held_s,
       ROUND(TIMESTAMPDIFF(MICROSECOND, q.req_since, UTC_TIMESTAMP(6)) / 1000000, 3) AS requested_s,
       q.epoch, q.cursor_value,
       CASE WHEN q.cur_server IS NULL THEN 'UNASSIGNED'
            WHEN c.uuid IS NULL OR c.task_type <> q.task_type OR c.own_sign <> q.own_sign THEN 'ORPHAN'
            WHEN TIMESTAMPDIFF(MICROSECOND, c.heartbeat_time, UTC_TIMESTAMP(6)) > c.judge_dead_interval_ms * 1000 THEN 'OVERDUE'
            WHEN q.req_server IS NOT NULL THEN 'MOVING'
            ELSE 'HELD' END AS status
  FROM schedule_queue q
  LEFT JOIN schedule_server c ON c.uuid = q.cur_server
  LEFT JOIN schedule_server r ON r.uuid = q.req_server;
