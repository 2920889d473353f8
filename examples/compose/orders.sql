-- The work: 200,000 orders to be settled.
CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, settled_by text);
CREATE INDEX orders_work ON orders (state, (COALESCE(ABS(mod(CAST(id AS bigint), 12)), 0)), id); -- 12 queues
INSERT INTO orders SELECT id, 'NEW' FROM generate_series(1, 200000) AS id;
ANALYZE orders; -- else PostgreSQL plans without statistics for a minute
