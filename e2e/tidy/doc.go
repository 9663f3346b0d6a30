// Package tidy holds the architecture of this repository as tests.
//
// Owns: the rules that no compiler or linter knows: which package may import
// which, what a pure core may do, how long files and functions may get, where
// subjects are spelled, that what the documents point at exists, and which words are
// not used (testdata/words.txt). Each rule
// is a func in a file of its own and runs on the sources as text and syntax
// trees, for all platforms at once; nothing is built.
//
// Never does: decide taste. A rule is here because breaking it has cost somebody
// an evening, and it can be decided without an argument.
//
// On failure: one line per finding, with the place and what to do instead. Where
// a finding has to stay, testdata/ holds the exceptions, each with its reason.
// Exceptions may only shrink: one that is no longer needed is a finding too.
package tidy
