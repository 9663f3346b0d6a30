// Package backup copies the data of a system, and starts another one on the copy.
//
// Owns: the copies that infra/docs/operations.md names. Of `yard dev` as a real process: the folder with its data, stopped,
// and at an instant in the middle of its work. Of a sealed cluster at rest, on three nodes of NATS: `yard backup`.
//
// Never does: look into the folder. The files that a client sees on the copy count, and a snapshot, which no client sees.
//
// On failure: what the process said.
package backup
