-- A synthetic third migration, which programs of version 1 cannot work with.
-- Oldest companion: version 2.

-- +goose Up
UPDATE schedule_schema_lock SET oldest_companion = 2;
