package uniquekey

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Ask is what is asked next about a task that wants its key, or what becomes of it.
type Ask uint8

// The questions, and the results.
const (
	// Read reads the head of the key: Head.
	Read Ask = iota
	// Owner asks the owner of a task whether it has ended: Owned.
	Owner
	// Find searches for a task that the head names: Found.
	Find
	// FindOwn searches for the task itself: FoundOwn.
	FindOwn
	// Replace replaces a task by this one: NotReplaced, or else it is decided.
	Replace
	// Write writes the task over the head.
	Write
	// Created: a try has stored it. Existing and Rejected: another task has the key.
	Created
	Existing
	Rejected
)

// Claim decides about one task that wants its key. It is used once.
type Claim struct {
	Task ids.TaskID
	// Asked is the task that an earlier check was to replace, if it is not known whether it did: it may have been replaced, and have ended since.
	Asked ids.TaskID
	// Replaces and Rejects: what the request asks for if the key is taken. Batch: the task is of a batch, Repeats: an earlier try may be stored.
	Replaces, Rejects, Batch, Repeats bool

	next   Ask
	head   Head
	word   Word
	exists bool // the task of the head has the key
	// foundOwn and replaced: these are asked already.
	foundOwn, replaced bool
}

// Next is what to ask, and about which task.
func (c *Claim) Next() (Ask, ids.TaskID) {
	if !c.Asked.IsZero() {
		return Replace, c.Asked
	}
	if c.next == FindOwn || c.next == Created {
		return c.next, c.Task
	}
	return c.next, c.head.Task
}

// Over is where the head lies that the task is written over.
func (c *Claim) Over() uint64 { return c.head.Seq }

// Head reports what the log says about the key.
func (c *Claim) Head(h Head, now time.Time) {
	c.head, c.word = h, Check(h, c.Task, now)
	switch {
	case c.word == Own, c.word == Unsure:
		c.next = Find
	case c.word == Taken && h.FreeAt == 0:
		c.next = Owner
	default:
		c.exists = c.word == Taken
		c.decide()
	}
}

// Owned reports what the owner of the task says that has the key. If it does not answer, the key is taken.
func (c *Claim) Owned(h Holder, answered bool, now time.Time) {
	c.exists = !answered || !Frees(h, now)
	c.decide()
}

// Found reports what is found of the task that the head names.
func (c *Claim) Found(h Holder, now time.Time) {
	if c.exists = h.Exists; c.word == Unsure {
		c.exists = Has(h, now)
	}
	c.decide()
}

// FoundOwn reports whether the task itself is stored: a try may have had the key before the one that the head names.
func (c *Claim) FoundOwn(found bool) {
	c.foundOwn = true
	if c.next = Created; !found {
		c.decide()
	}
}

// NotReplaced reports that the task was not replaced.
func (c *Claim) NotReplaced() {
	if !c.Asked.IsZero() {
		c.Asked = ids.TaskID{}
		return
	}
	c.replaced = true
	c.decide()
}

// decide goes on once it is known whether another task has the key.
func (c *Claim) decide() {
	other := c.head.Seq != 0 && c.word != Own
	switch {
	case other && c.Batch && !c.foundOwn && (!c.exists || c.Replaces):
		c.next = FindOwn
	case other && c.Replaces && !c.replaced && (c.exists || c.Repeats):
		c.next = Replace
	case !c.exists:
		c.next = Write
	case c.word == Own:
		c.next = Created
	case c.Rejects:
		c.next = Rejected
	default:
		c.next = Existing
	}
}
