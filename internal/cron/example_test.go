package cron_test

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/cron"
)

// The clock skips 2:30 on one of the days. The expression then fires at the end of the gap.
func ExampleExpr_Next() {
	berlin, err := cron.LoadZone("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	e, err := cron.Parse("0 30 2 * * ?", berlin)
	if err != nil {
		panic(err)
	}
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)
	for range 3 {
		at = e.Next(at)
		fmt.Println(at)
	}
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
}

// A server may work from 22:00 to 6:00.
func ExampleWindow_At() {
	w, err := cron.ParseWindow("0 0 22 * * ?", "0 0 6 * * ?", "UTC")
	if err != nil {
		panic(err)
	}
	s := w.At(time.Date(2026, 8, 1, 1, 0, 0, 0, time.UTC))
	fmt.Println("open:", s.Open)
	fmt.Println("since", s.Since)
	fmt.Println("until", s.NextEnd)
	// Output:
	// open: true
	// since 2026-07-31 22:00:00 +0000 UTC
	// until 2026-08-01 06:00:00 +0000 UTC
}
