// Package backup copies all that a cluster at rest has stored into a folder, and from there to another NATS.
//
// Owns: the form of the folder, which is a file per stream, as the snapshot of JetStream has it, and the manifest. The
// manifest is written last, so a folder without one is no backup.
//
// Never does: copy beside a service that lives, change what it copies, or restore over a stream that exists. It does not
// copy the hints, which are in memory: provision makes their streams again.
//
// On failure: the folder has no manifest, and the restored NATS has no config bucket, so neither passes for whole.
package backup
