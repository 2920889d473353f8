package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// model is the same classifier, computed in memory from the texts.
type model struct {
	documents  int
	classes    map[string]*counts
	vocabulary map[string]bool
}

// counts has the counts of one class.
type counts struct {
	documents, words int
	word             map[string]int
}

func learn(documents []document) *model {
	m := &model{classes: map[string]*counts{}, vocabulary: map[string]bool{}}
	for _, d := range documents {
		if d.find {
			continue
		}
		c := m.classes[d.class]
		if c == nil {
			c = &counts{word: map[string]int{}}
			m.classes[d.class] = c
		}
		m.documents++
		c.documents++
		for _, w := range words(d.text) {
			m.vocabulary[w] = true
			c.words++
			c.word[w]++
		}
	}
	return m
}

func (m *model) classify(text string) (class string, logP float64) {
	logP = math.Inf(-1)
	for _, name := range slices.Sorted(maps.Keys(m.classes)) {
		c := m.classes[name]
		sum := math.Log(float64(c.documents) / float64(m.documents))
		for _, w := range words(text) {
			if m.vocabulary[w] {
				sum += math.Log(float64(c.word[w]+1) / float64(c.words+len(m.vocabulary)))
			}
		}
		if sum > logP {
			class, logP = name, sum
		}
	}
	return class, logP
}

// compare returns a report of the predictions. It fails if a prediction differs from the direct computation.
func compare(ctx context.Context, db *sql.DB, documents []document) (string, error) {
	m := learn(documents)
	var out strings.Builder
	fmt.Fprintf(&out, "%-10s %-10s text\n", "predicted", "actual")
	right, n := 0, 0
	for _, d := range documents {
		if !d.find {
			continue
		}
		var class string
		var logP float64
		if err := db.QueryRowContext(ctx, `SELECT class, log_p FROM prediction WHERE document_id = ?`, d.id).Scan(&class, &logP); err != nil {
			return "", fmt.Errorf("document %d: %w", d.id, err)
		}
		if want, wantP := m.classify(d.text); class != want || math.Abs(logP-wantP) > 1e-9*math.Abs(wantP) {
			return "", fmt.Errorf("document %d: got %s with %g, but the direct computation gives %s with %g", d.id, class, logP, want, wantP)
		}
		fmt.Fprintf(&out, "%-10s %-10s %.50s...\n", class, d.class, d.text)
		if n++; class == d.class {
			right++
		}
	}
	fmt.Fprintf(&out, "\n%d of %d are right; a direct computation gives the same predictions.\n", right, n)
	return out.String(), nil
}
