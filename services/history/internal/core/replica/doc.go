// Package replica is a history partition as a pure function: Step takes a record of
// the log, the result of a write, an answer or a tick, and says what has to be done.
//
// Owns: the tasks in memory, how far each reader is and what it has admitted, commands that came before their
// task, which domains lag behind a lane, what is on its way to the other stores, recently ended tasks, the lease, and when it is time for a snapshot, a
// checkpoint or a purge.
// Never does: I/O, reading a clock, randomness; nothing depends on the order of a map or
// on what a cache holds. The log's own times decide about tasks; the time of a step only decides when to propose a record, to repeat a hint, or that the
// lease is over.
// On failure: a broken invariant panics; a record of an unknown kind sets Effects.Halt.
//
// # Order
//
// The state is a function of the log: of its turns, and of the steps that each names (decision 0051). A step reads messages of a lane, or of a domain that
// was split off; these are admitted in order. While a turn is being stored there are no steps, so that it is never open on which side of it one lies. A
// takeover begins with a snapshot, which is the state as of a turn, and takes the same steps between the same turns.
//
//   - An event names the position of the submit that it is about. If that is not in the state, the event has no effect: a grab
//     comes again with the trigger that follows the admission, and what else is asked about a task that has left is answered
//     from the other stores.
//   - A stay (ID, Parkings) follows the one before: what comes back from the timer store was parked by an event that lies before.
//   - A command (a cancel, an update and the like) names only the task. It concerns a task that was submitted before
//     it, and applies to the stay that is in memory. If there is none it waits, until the other stores tell where the task is,
//     or every lane has passed the log's end of that moment. An answer of theirs counts
//     only if it was asked for after the command came and after the task last left.
//   - A record that a submit alone sends to another store goes once the turn that admits it is stored.
//
// An update is decided once. The task remembers the place of the last one that was, also of one that was refused, and carries it through the other stores. A
// task in the timer store is fired early for a command, and goes back as the next stay with what the command has changed (decision 0043).
//
// Freedom that is left: the verdict on a repeated outcome of a stay that is over is OK or STALE, depending on what has been read. A grab of a task that never
// was is STALE or NOT_FOUND.
//
// A submit that is repeated in another lane, or after its task has left memory, is a new task. The replica cannot refuse it: which tasks it remembers depends
// on memory, and a takeover would decide otherwise. So it must not get into the log, and it is the frontend that keeps it out (decision 0023): the log
// refuses a repeated message for topology.DedupeWindow, and a try that comes after others asks history, timer and archive for the task first. For that a
// submit may say until when it counts (decoders leave out what is void), and this the log's own time decides: what it has not found by then will not come. A
// task that the timer fires is in the log once, with its cursor (I10).
//
// # Queues
//
// A domain may lag behind a lane: the lane's reader passes over the messages that are filed under it, and a reader of its own reads them. Both moments are
// steps of the log. A message that domains share lies in no queue, and its positions say so.
//
// # Order keys
//
// Tasks of one domain and order key run one at a time, in the order of their places in the log (decision 0044). Which one may be granted the log says, by an
// event about that task alone: its turn. An owner proposes it once every task of the key with an earlier place has ended, which is true for good; so it does
// not matter who proposes it, or how often. A task with a key is never parked, and not triggered before its turn.
//
// # Bounds
//
// A record that is in the log counts, whatever memory holds. So the bound of waiting commands is kept before the log: Waiting tells the frontends, which take
// no more for this partition, or of a domain that has more than its share, until fewer wait. An outcome that waits for a search has no effect, whatever is
// found: past a bound it is refused. At a tick a part of what waits is looked at.
//
// # Matching shards
//
// A fence raises the epoch of a shard. A grab of an older epoch behind it is refused as STALE, and says that it was fenced; so is an attempt that its owner
// gives back, since the next one may have sent it to its poll once more, where a worker has it; what was read before the fence, or waits since before, is
// decided as if there were none.
//
// Which attempts may not have been delivered, and which tasklist partition a task is given, is not agreed between owners: package dispatch keeps it.
//
// # Silence
//
// While the log takes nothing, and for a while afterwards, no lease is proposed to expire (decision 0021). The attempts of a worker whose signs of life stop
// are proposed to expire (decision 0041). Neither is anything that owners have to agree about: the log refuses an expiry that comes too late, or after a
// heartbeat.
//
// # Live and replay
//
// A takeover feeds the same records through the same Step. Until Recovered, nothing is answered, triggered, stored or proposed, and what the other stores
// hold behind the snapshot leaves memory at once. Then what is ready is triggered, and what ended or was parked is stored.
//
// # The lease
//
// Purging removes what a stale owner has not read, so a stale owner must not go on (I12). A saved checkpoint grants a lease from the moment before it was
// sent. Step takes records of the log only while the lease holds, and the caller asks after it has received them: then nothing before them can have been
// purged. A message that a checkpoint covered is purged only when twice the lease has passed since: a saved checkpoint names a snapshot, and what lies before
// that is covered.
package replica
