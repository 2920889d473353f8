-- A synthetic second migration: what a later version may do to the tables.
-- Oldest companion: version 1. It leaves the new column at its default.
--
-- MySQL commits each DDL statement by itself and has no ADD COLUMN IF NOT EXISTS. The migration looks for each
-- column first, so that it can run again after it was killed.

-- +goose Up
CREATE TABLE IF NOT EXISTS schedule_later (id BIGINT NOT NULL PRIMARY KEY) ENGINE = InnoDB;
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_server' AND column_name = 'later') > 0,
    'DO 0', 'ALTER TABLE schedule_server ADD COLUMN later BIGINT NOT NULL DEFAULT 0');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
SET @ddl = IF((SELECT COUNT(*) FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'schedule_queue' AND column_name = 'later') > 0,
    'DO 0', 'ALTER TABLE schedule_queue ADD COLUMN later BIGINT NOT NULL DEFAULT 0');
PREPARE ddl FROM @ddl;
EXECUTE ddl;
DEALLOCATE PREPARE ddl;
