// Package cron reads the cron expressions of Quartz and computes when they fire. It also computes when a permit window
// made of two expressions is open. It is pure: it reads no clock and starts no goroutines. Its values may be shared.
//
// # Expressions
//
// An expression has six or seven fields: second, minute, hour, day-of-month, month, day-of-week and an optional year
// (1970-2199). What Quartz documents has the same meaning here. Days of the week are 1-7 = SUN-SAT. "FRI#2" and "6#2"
// are the second Friday, "6L" is the last Friday. "L", "L-3", "LW", "L-3W" and "15W" are days of the month. Ranges may
// wrap (22-2, FRI-MON), and "/5" is "*/5". One of day-of-month and day-of-week must be "?" or "*". If both are set,
// Quartz refuses, Vixie cron takes either and other programs take both; this package refuses.
//
// Five fields of a crontab are read after "cron5:", such as "cron5: 0 2 * * MON-FRI": minute, hour, day of the month,
// month and day of the week, which is 0-7 = SUN-SUN there. If both days are set, either of them suffices, as in
// crontab(5).
//
// Some things go beyond Quartz: both days may be left open, a list may mix all forms, and @yearly (@annually),
// @monthly, @weekly, @daily (@midnight) and @hourly are known. Five fields are refused without "cron5:", because either
// the seconds or the year could be missing. An expression that can never fire is refused, such as "0 0 0 30 2 ?". An
// expression that fired only in the past is valid; its Next is the zero time.
//
// # Clock changes
//
// One of two rules applies. The hour field decides which.
//
// If the hour field omits some hour, the expression names times of the day, and each is due once a day (R3). A time
// that the clock shows twice in autumn fires the first time. A time that the clock skips in spring fires at the first
// instant after the gap; several such times fire once.
//
// If the hour field covers all 24 hours, the expression names an interval. It fires whenever the clock shows a matching
// time, also the second time, and at no other instant. "0 * * * * ?" fires every real minute and "0 30 * * * ?" every
// real hour through both changes. (Where the clock changes by 30 minutes, the latter fires half an hour earlier or
// later on that day.) By the first rule such an expression would not fire in the repeated hour.
//
// These are the rules of Vixie cron, with one difference. Vixie cron also treats "*" in the minute field, and "*/2" in
// the hour field, as an interval. Here "0 */10 2 * * ?" and "0 30 */2 * * ?" name hours, and their 2:30 fires once on
// every day.
//
// # Arithmetic
//
// github.com/netresearch/go-cron does the work on the calendar: the tests compare its Prev, L, W and # with a count of
// days. It gets wall times only, which have no clock changes. (A wall time is a time.Time in UTC that reads like the
// clock of the zone.) zone.go maps wall times to instants. The library's own handling of zones fires twice in autumn
// and loses times in a gap of half an hour.
//
// The parser of the library is not used either. It counts days of the week from 0, refuses "12/12", ignores the "-5" of
// "*-5", and fills the memory on the year "1-2147483647". To use it, this package would have to read each field and
// write it again. That takes as much code as the library's schedule does now.
//
// Next and Prev take a few microseconds. The time depends neither on the distance of the given time from the present
// nor on how often the expression fires.
package cron
