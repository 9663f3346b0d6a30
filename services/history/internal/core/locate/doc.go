// Package locate keeps what is asked about tasks that are not in the state of their partition, until the other stores have said where the task is.
//
// Owns: the commands (cancel, update, redrive, skip, unblock) that wait for their task, the outcomes that wait for the end of theirs, the searches for both,
// and what an answer to a search means. Never does: change a task, look into a store, or read a clock. On failure: nothing can fail.
//
// # Commands
//
// A command names only the task. It concerns a task that was submitted before it. If that is not in the state, it is looked for:
//
//   - In the timer store: the timer fires it now. The command waits for it to be admitted, and is applied then.
//   - In the intake, unread: likewise; the caller learns at once what will be decided.
//   - In the archive: the end that it has decides, unless the task was dead and may be back.
//   - As a dead letter: a redrive brings the task back.
//   - Nowhere: the command waits until the lanes are read up to where they ended behind the answer of the timer. A task that has not come by then does not exist.
//
// An answer counts only if it was asked for after the command came and after the task last left memory. One search of a task is under way at a time, for one
// domain: the one whose command has waited for longest.
//
// A command that waits is in the log or in the snapshot, so a takeover has it again and searches again. The verdicts here follow from
// answers of other stores, so they are sent behind a turn that began after them (package answer).
//
// # Outcomes
//
// An outcome of a task that has left changes nothing: its sender only repeats it. Past a bound it is refused.
package locate
