package main

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// The dealers write in a fenced transaction that also marks the document as done in this run. So a batch that is executed
// again after a crash takes effect once.

// item is a document in a sweep.
type item struct {
	id   int64
	text string
	run  string
}

// selectItems returns the next documents of a queue that this run has not done yet.
func selectItems(ctx context.Context, db *sql.DB, sel processor.Selection, where string) (items []item, err error) {
	rows, err := db.QueryContext(ctx, `SELECT id, text FROM document WHERE `+schema.SQLite.Mine("id", 1)+` AND `+where+` <> ? ORDER BY id LIMIT ?`,
		sel.Total, sel.Queue.Index, sel.Run.ID, sel.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		it := item{run: sel.Run.ID}
		if err := rows.Scan(&it.id, &it.text); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, rows.Err()
}

// extract counts the words of documents.
type extract struct{ db *sql.DB }

// Select implements processor.TaskDealer.
func (d extract) Select(ctx context.Context, sel processor.Selection) ([]item, error) {
	return selectItems(ctx, d.db, sel, "extracted_by")
}

// Execute implements processor.TaskDealer.
func (d extract) Execute(ctx context.Context, items []item) error {
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error {
		for _, it := range items {
			if _, err := tx.ExecContext(ctx, `DELETE FROM word WHERE document_id = ?`, it.id); err != nil {
				return err
			}
			for _, word := range words(it.text) {
				_, err := tx.ExecContext(ctx, `INSERT INTO word (document_id, word, bucket, n) VALUES (?, ?, ?, 1)
					ON CONFLICT (document_id, word) DO UPDATE SET n = n + 1`, it.id, word, bucket(word))
				if err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, `UPDATE document SET extracted_by = ? WHERE id = ?`, it.run, it.id); err != nil {
				return err
			}
		}
		return nil
	})
}

// prior computes the probability of each class.
type prior struct{ db *sql.DB }

func (d prior) compute(ctx context.Context, _ processor.Selection) error {
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM prior`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO prior (class, log_p) SELECT class, ln(CAST(COUNT(*) AS REAL) / (SELECT COUNT(*) FROM document WHERE class IS NOT NULL))
			FROM document WHERE class IS NOT NULL GROUP BY class`)
		return err
	})
}

// conditional computes the probability of each word of a queue in each class, with Laplace's correction.
type conditional struct{ db *sql.DB }

func (d conditional) compute(ctx context.Context, sel processor.Selection) error {
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM conditional WHERE word IN (SELECT word FROM word WHERE mod(bucket, ?) = ?)`, sel.Total, sel.Queue.Index)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			WITH known AS (SELECT d.class, w.word, w.bucket, w.n FROM word w JOIN document d ON d.id = w.document_id WHERE d.class IS NOT NULL)
			INSERT INTO conditional (class, word, log_p)
			SELECT c.class, v.word, ln((COALESCE((SELECT SUM(n) FROM known k WHERE k.class = c.class AND k.word = v.word), 0) + 1.0)
				/ (c.total + (SELECT COUNT(DISTINCT word) FROM known)))
			FROM (SELECT class, SUM(n) AS total FROM known GROUP BY class) c
			CROSS JOIN (SELECT DISTINCT word FROM known WHERE mod(bucket, ?) = ?) v`, sel.Total, sel.Queue.Index)
		return err
	})
}

// predict finds the most probable class of the documents without a class.
type predict struct{ db *sql.DB }

// Select implements processor.TaskDealer.
func (d predict) Select(ctx context.Context, sel processor.Selection) ([]item, error) {
	return selectItems(ctx, d.db, sel, "class IS NULL AND predicted_by")
}

// Execute implements processor.TaskDealer.
func (d predict) Execute(ctx context.Context, items []item) error {
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error {
		for _, it := range items {
			class, logP, err := mostProbable(ctx, tx, it.id)
			if err != nil {
				return fmt.Errorf("document %d: %w", it.id, err)
			}
			_, err = tx.ExecContext(ctx, `INSERT INTO prediction (document_id, class, log_p) VALUES (?, ?, ?)
				ON CONFLICT (document_id) DO UPDATE SET class = excluded.class, log_p = excluded.log_p`, it.id, class, logP)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE document SET predicted_by = ? WHERE id = ?`, it.run, it.id); err != nil {
				return err
			}
		}
		return nil
	})
}

// mostProbable returns the most probable class of a document. It ignores words that occur in no document with a class.
func mostProbable(ctx context.Context, tx *sql.Tx, id int64) (class string, logP float64, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT p.class, p.log_p + COALESCE((SELECT SUM(w.n * c.log_p) FROM word w
		JOIN conditional c ON c.word = w.word AND c.class = p.class WHERE w.document_id = ?), 0) FROM prior p ORDER BY p.class`, id)
	if err != nil {
		return "", 0, err
	}
	defer rows.Close()
	for logP = math.Inf(-1); rows.Next(); {
		var name string
		var sum float64
		if err := rows.Scan(&name, &sum); err != nil {
			return "", 0, err
		}
		if sum > logP {
			class, logP = name, sum
		}
	}
	return class, logP, rows.Err()
}
