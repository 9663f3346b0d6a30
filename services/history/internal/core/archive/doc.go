// Package archive decides how finished tasks are laid out in the archive, and
// where to look for one.
//
// Owns: which tasks share a message, which spans of creation time have an index
// page of their own, the page's form, and the search in it.
// Never does: encode tasks, or know a stream.
// On failure: there is none; a page that is not well-formed finds nothing.
//
// The archive is a sequence of messages with tasks. The index follows behind: when
// enough messages have gathered, pages are written that tell, for spans of creation
// time, which message holds which task. The messages that are not in the index yet are its tail:
// few messages, that a reader keeps in memory.
package archive
