// Package upgrade runs programs of two log versions side by side, as a rolling
// upgrade does.
//
// Owns: the binaries of the next version (the same programs, built with a raised
// log version) and the steps of an upgrade, from the first new process to an old
// one that comes too late, or meets what it cannot read.
//
// Never does: look into a process; cluster's health pages, logs and exit codes, the
// yard command and the streams tell.
//
// On failure: the test prints the logs of all processes.
package upgrade
