// Package lifecycle runs the parts of a process: it starts them in order, stops
// them in reverse, and ends with the first error.
//
// Owns: the context of every part, the order of starting and stopping, and the
// signals of the process (Main).
//
// Never does: restart a part, log, or know what a part does. Whatever outlives its
// start is a part with a Run that blocks; there are no Start/Stop pairs.
//
// On failure: a part that returns an error or panics stops the whole group, parts
// added later first. A part that does not come back in time is named in the
// group's error and left behind, and the parts before it are stopped all the same.
//
// The order is the point: a part may use every part added before it until it has
// returned, because their contexts are still alive. So connections are added
// first, then what uses them, then what lets requests in.
package lifecycle
