// Package archive decides how finished tasks are laid out in the archive, and where to look for one.
//
// Owns: which tasks share a message, which spans of creation time have an index page of their own, the page's form, the
// search in it, and the order of a list.
// Never does: encode tasks, or know a stream.
// On failure: there is none; a page that is not well-formed finds nothing.
//
// The archive is a sequence of messages with tasks. The index follows behind: when enough messages have gathered, pages
// are written that tell, for spans of creation time, which message holds which task. The messages that are not in the
// index yet are its tail: few messages, that a reader keeps in memory.
//
// A page has tasks of one domain, in the order of their ids. A task is found in the pages of the three spans that it
// was created in. A list reads spans from the newest to the oldest, and the messages of the tasks that it shows.
package archive
