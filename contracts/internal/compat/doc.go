// Package compat holds what clients of the public API depend on: the number, name and type of every field, enum
// values, error codes, headers and subjects.
//
// Owns: testdata/api.txt, a line for each. Its test fails if a line is no longer true: a client that was built
// before would misread an answer, or be refused. Never does: check what is new; a new line is compatible.
// On failure: take the change back, or give the new thing a new number and name.
package compat
