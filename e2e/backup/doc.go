// Package backup copies the data of a running system, and starts another one on the copy.
//
// Owns: `yard dev` as a real process, the folder with its data, and the two copies that infra/docs/operations.md
// names: of one that has been stopped, and of one at an instant in the middle of its work.
//
// Never does: look into the folder. The files that a client sees on the copy count, and a snapshot, which no client sees.
//
// On failure: what the process said.
package backup
