-- The tables of rota.yaml, for any of the databases.
CREATE TABLE orders (
	id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, email TEXT NOT NULL, weight INTEGER NOT NULL,
	state VARCHAR(9) NOT NULL DEFAULT 'NEW', note TEXT
);
CREATE INDEX orders_work ON orders (state, id);
CREATE TABLE payments (order_id INTEGER NOT NULL, amount INTEGER NOT NULL);
