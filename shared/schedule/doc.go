// Package schedule computes the times of a schedule and fills in the texts of its task.
//
// Owns: the check of a yard.v1.Schedule, the next time of its calendar, the jitter, and the placeholders of its task. Never
// does: read a clock, do I/O (but for the zone files, once per Parse), or know which runs were made. On failure: Parse and
// CheckTask return a fault.Error with the path of the field, relative to the schedule.
//
// Expressions are parsed by github.com/robfig/cron/v3. Its own Next is not used: it skips times that do not exist. Here a week
// may also end with Sunday as 7 (`1-7`, `fri-sun`). If the day of the month and the day of the week are both restricted, one of
// them is enough; a step (`*/2`) restricts. L, W, # and ? are refused, and so are @every, TZ= and CRON_TZ=, for which a schedule
// has fields. An exclusion of five fields covers the whole of each minute that it matches.
//
// Daylight saving follows Vixie cron 4.1: after a change of the clock of less than three hours, jobs at a particular time that was
// skipped run soon after the change, those whose time is repeated do not run again, and jobs with a wildcard for the hour
// follow the new clock (its manual page cron(8), "Daylight Saving Time and other time changes"). Two things differ. Only the
// hour field counts, so `* 2 * * *` has a particular hour. And changes may be of any length, such as the day that Samoa
// skipped in 2011. So
//   - if clocks go forward, all times of fixed hours within the gap are one run, at the moment of the change;
//   - if clocks go back, the times of a fixed hour run when they come first, and not again;
//   - an hour that is `*` or `*/n` follows the clock: not at all in the gap, and both times in what is repeated.
//
// Exclusions are compared with the local time of the moment of the run.
//
// The zones are those of the machine, and those of time/tzdata where it has no zone files. They add about 450 KB to a binary.
package schedule
