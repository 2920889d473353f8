package center_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// No file can set a field that has no row in the table of settings, and no column holds it.
func TestEveryFieldOfSettingsHasARow(t *testing.T) {
	var s center.Settings
	covered := map[any]bool{}
	for _, row := range center.SettingTable() {
		p := row.Field(&s)
		if covered[p] {
			t.Errorf("row %s: another row has the same field", row.Name)
		}
		covered[p] = true
	}
	for field, value := range reflect.ValueOf(&s).Elem().Fields() {
		if !covered[value.Addr().Interface()] {
			t.Errorf("Settings.%s has no row in the table of settings", field.Name)
		}
	}
}

func TestPageListsTheSettings(t *testing.T) {
	page, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := settingsInMarkdown(); !strings.Contains(string(page), want) {
		t.Errorf("table of settings in docs/settings.md: want\n%s", want)
	}
}

func settingsInMarkdown() string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	seen := map[string]bool{}
	for _, row := range center.SettingTable() {
		if seen[row.Name] {
			continue
		}
		seen[row.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.Name, defaultInMarkdown(row.Default), cell(row.Help))
	}
	return b.String()
}

func defaultInMarkdown(value any) string {
	d, ok := value.(time.Duration)
	switch {
	case value == nil:
		return ""
	case ok && d >= time.Minute: // 5m rather than 5m0s
		return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
	}
	return fmt.Sprint(value)
}

// cell escapes what would end a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
