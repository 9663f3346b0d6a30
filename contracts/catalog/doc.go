// Package catalog keeps the domains, task types and settings of tasklists of a cluster, and the log version
// that it writes, at hand, as they stand in the config bucket.
//
// Owns: how they are stored, and a copy in memory that follows the bucket, with
// lookups that take no lock and allocate nothing: every submitted task asks.
//
// Never does: check settings (the frontend does, before it stores them) or fill in
// defaults.
//
// On failure: the copy stays as it is while NATS is away and catches up afterwards.
// A value that cannot be read is passed over: what was known before stays.
// A deletion reaches the copies as a change does. It leaves a marker of about a hundred bytes
// in the bucket, for good: names are few, and used again.
package catalog
