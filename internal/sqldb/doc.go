// Package sqldb holds what the databases of a roster share: the SQL fragments in which they differ (Dialect), the
// description of one database (Database), its open pools (DB), transactions with retries (Tx), prepared statements, and
// helpers that scan rows and bind parameters.
//
// Statements are written once, with ? for parameters, {now} for the database's clock and {ago COLUMN} for the instant
// COLUMN milliseconds ago; they stand next to the method that uses them. Query builders were tried, and each was wrong
// on one of the three databases.
//
// The packages center/postgres, center/mysql and center/sqlite each return a Database. sqldb imports none of them and
// no driver, so that a program links only the driver that it uses. There is no registry of databases.
//
// cenkalti/backoff paces the retries, because jitter and caps are easy to get wrong.
package sqldb
