package main

import (
	"context"
	"database/sql"
	_ "embed"
	"hash/fnv"
	"strings"
	"unicode"
)

//go:embed corpus.txt
var corpusText string

// document is a line of the corpus. A document to classify has no class in the database.
type document struct {
	id    int64
	class string
	text  string
	find  bool
}

func corpus() (documents []document) {
	for line := range strings.Lines(corpusText) {
		class, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		class, find := strings.CutPrefix(class, "?")
		documents = append(documents, document{int64(len(documents) + 1), class, text, find})
	}
	return documents
}

// words returns the words of a text in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// bucket returns the number that decides the queue of a word.
func bucket(word string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(word)) // a hash returns no errors
	return int64(h.Sum32())
}

const tables = `
CREATE TABLE document (id INTEGER PRIMARY KEY, class TEXT, text TEXT NOT NULL, extracted_by TEXT NOT NULL DEFAULT '', predicted_by TEXT NOT NULL DEFAULT '');
CREATE TABLE word (document_id INTEGER NOT NULL, word TEXT NOT NULL, bucket INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (document_id, word));
CREATE TABLE prior (class TEXT PRIMARY KEY, log_p REAL NOT NULL);
CREATE TABLE conditional (class TEXT NOT NULL, word TEXT NOT NULL, log_p REAL NOT NULL, PRIMARY KEY (class, word));
CREATE TABLE prediction (document_id INTEGER PRIMARY KEY, class TEXT NOT NULL, log_p REAL NOT NULL);`

func createTables(ctx context.Context, db *sql.DB, documents []document) error {
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	for _, d := range documents {
		class := sql.NullString{String: d.class, Valid: !d.find}
		if _, err := db.ExecContext(ctx, `INSERT INTO document (id, class, text) VALUES (?, ?, ?)`, d.id, class, d.text); err != nil {
			return err
		}
	}
	return nil
}
