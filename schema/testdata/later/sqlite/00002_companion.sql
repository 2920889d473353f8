-- A synthetic second migration, which only programs of the version before can work with.
-- Oldest companion: version {{previous}}.

-- +goose Up
UPDATE schedule_schema_lock SET oldest_companion = {{previous}};
