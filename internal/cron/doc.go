// Package cron reads Quartz's cron expressions and says when they fire, and when a permit window made of two of them
// is open. It is pure: no clock, no goroutines, and everything it returns may be shared.
//
// # Expressions
//
// Six or seven fields: second, minute, hour, day-of-month, month, day-of-week and, if wanted, year (1970-2199).
// Whatever Quartz documents means here what it means there: days of the week are 1-7 = SUN-SAT, "FRI#2" and "6#2" are the
// second Friday, "6L" is the last Friday, "L", "L-3", "LW" and "15W" are days of the month, ranges may wrap (22-2,
// FRI-MON), "/5" is "*/5". One of day-of-month and day-of-week must be "?" or "*"; if both are set, Quartz refuses,
// Vixie cron takes either and others take both, so it is refused here too. Beyond Quartz, both may be left open, a list
// may mix all forms, and @yearly (@annually), @monthly, @weekly, @daily (@midnight) and @hourly are known. Five fields
// are refused: whether the seconds or the year are missing would be a guess. So is what can never fire, such as
// "0 0 0 30 2 ?". What fired only in the past is no error; its Next is the zero time.
//
// # Clock changes
//
// Which of two rules applies depends on the hour field.
//
// If it leaves some hour out, the expression names times of the day, and each is due once a day (rule R3). A time that
// the clock shows twice in autumn fires when it is shown first. One that the clock leaves out in spring fires at the
// first instant after the gap; several such times are one firing.
//
// If it covers all 24 hours, the expression names an interval: it fires whenever the clock shows a matching time, be it
// for the second time, and never else. "0 * * * * ?" fires every real minute and "0 30 * * * ?" every real hour through
// both changes (where the clock changes by 30 minutes, half an hour earlier or later on that day). Stopping it for the
// repeated hour, as the first rule would, is what nobody wants who writes it.
//
// These are Vixie cron's rules. It also counts "*" in the minute field, and "*/2" in the hour field, as an interval;
// here "0 */10 2 * * ?" and "0 30 */2 * * ?" name hours, so that their 2:30 comes once on every day.
//
// # Arithmetic
//
// The work on the calendar is github.com/netresearch/go-cron's: its Prev, L, W and # were right in every test against
// a count of days. It is used on wall times only, which know no clock changes (a wall time is a time.Time in UTC with
// the same hands); zone.go maps them to instants. The library's own handling of zones fires twice in autumn and loses
// times in a gap of half an hour. Its parser is not used either: it counts days of the week from 0, refuses "12/12",
// ignores the "-5" of "*-5", and fills the memory on the year "1-2147483647". Each field would have to be taken apart
// and put together again for it, which is as long as filling in its schedule.
//
// Next and Prev take constant time, in the order of microseconds: they depend neither on how far the given time is from
// the present nor on how often the expression fires.
package cron
