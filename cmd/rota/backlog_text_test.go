package main

import "testing"

func TestBacklogText(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	s := func(s float64) *float64 { return &s }
	for want, got := range map[string]string{
		"-":                 backlogText(nil, "", "", nil, nil),
		"0":                 backlogText(n(0), "", "", s(1), s(0)),
		"1200":              backlogText(n(1200), "", "", s(1), nil),
		"1200 40s":          backlogText(n(1200), "", "", s(1), s(40)),
		"1200+":             backlogText(n(1200), "+", "", s(1), nil),
		"1200 STUCK":        backlogText(n(1200), "", "STUCK", s(1), nil),
		"7 DRAINING 2m":     backlogText(n(7), "", "DRAINING", s(1), s(120)),
		"7 (10m ago)":       backlogText(n(7), "", "", s(600), s(120)),
		"7 STUCK (10m ago)": backlogText(n(7), "", "STUCK", s(600), nil),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
