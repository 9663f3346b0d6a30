package doctor

import "slices"

// Code names a kind of finding. Codes are never reused.
type Code string

// The codes.
const (
	TaskLost             Code = "TASK_LOST"
	FiredAndLost         Code = "FIRED_AND_GONE"
	FiredTwice           Code = "FIRED_TWICE"
	Overdue              Code = "OVERDUE"
	TwoHomes             Code = "TWO_HOMES"
	EndedTwice           Code = "ENDED_TWICE"
	GrantedTwice         Code = "GRANTED_TWICE"
	ArchiveGap           Code = "ARCHIVE_GAP"
	DeadLetterWithoutEnd Code = "LETTER_WITHOUT_END"
	EndWithoutDeadLetter Code = "END_WITHOUT_LETTER"
	KeyVoid              Code = "KEY_VOID"
	KeyMissing           Code = "KEY_MISSING"
	Unreadable           Code = "UNREADABLE"
	NewerRecord          Code = "NEWER_RECORD"
	StoreBehind          Code = "STORE_BEHIND"
	SnapshotMissing      Code = "SNAPSHOT_MISSING"
	Quarantined          Code = "QUARANTINED"
	NoOwner              Code = "NO_OWNER"
	PartitionStopped     Code = "PARTITION_STOPPED"
	StreamMissing        Code = "STREAM_MISSING"
	StreamDiffers        Code = "STREAM_DIFFERS"
	StreamOrphan         Code = "STREAM_ORPHAN"
	ConsumerOrphan       Code = "CONSUMER_ORPHAN"
	SlotsLeaked          Code = "SLOTS_LEAKED"
	SlotsMiscounted      Code = "SLOTS_MISCOUNTED"
	TableOrphan          Code = "TABLE_ORPHAN"
	TableOutOfReach      Code = "TABLE_OUT_OF_REACH"
	BatchMiscounted      Code = "BATCH_MISCOUNTED"
	BatchStuck           Code = "BATCH_STUCK"
	CallbackMissing      Code = "CALLBACK_MISSING"
	ScheduleBroken       Code = "SCHEDULE_BROKEN"
	ScheduleLate         Code = "SCHEDULE_LATE"
	inspectYourBackup         = "restore all stores of the partition together from a backup, or remove its checkpoint to accept the loss"
)

// Kind is what the findings of one code have in common.
type Kind struct {
	Code Code
	// Invariant is the rule of the engine that is broken, such as "I6"; empty = none is, something is left over.
	Invariant string
	// Means says what is wrong, Do what to do: a command, with <task> and <place> for what the finding names.
	Means, Do string
	// Repair says what --repair does; empty = it does nothing.
	Repair string
}

const taskGet = "`yard task get <task> --domain <domain>` shows what the engine knows of it; keep the logs of history and timer, and report it"

var kinds = []Kind{
	{TaskLost, "I1", "an accepted task is lost: its log is read past it, but it neither waits nor runs, and the archive has no end of it", taskGet, ""},
	{FiredAndLost, "I10", "a task counts as fired, but it is not in the log, does not wait again, and the archive has no end of it", taskGet, ""},
	{FiredTwice, "I10", "one generation of a task was fired into the log twice", taskGet, ""},
	{Overdue, "I10", "a task in the timer store was due some minutes ago", "`yard status` shows whether a timer is ready, and whether the storage is full", ""},
	{TwoHomes, "I6", "a task waits in the timer store, but the archive has its end: it would run again", "`yard task cancel <task> --domain <domain> --yes`, and report it", ""},
	{EndedTwice, "I4", "the archive has two ends of a task, and they differ", taskGet, ""},
	{GrantedTwice, "I4", "the history of a task has two ends, or an attempt that began twice", taskGet, ""},
	{ArchiveGap, "I6", "a finished task is in the archive but not in its index: `yard task get` and `yard task list` do not find it", "report it: the task itself is whole, at <place>", ""},
	{DeadLetterWithoutEnd, "I6", "a dead letter has no end in the archive", taskGet, ""},
	{EndWithoutDeadLetter, "I6", "a task ended dead and has no dead letter", "`yard task get <task> --domain <domain>` has the whole task: submit it again by hand", ""},
	{KeyVoid, "", "a unique key belongs to a task that never existed, or ended long ago; the next submit of the key would free it", "`yard doctor --repair`", "frees the key, if its record has not changed"},
	{KeyMissing, "I2", "the log does not have the unique key of a waiting task: another task may get it", taskGet, ""},
	{Unreadable, "I13", "a stored record cannot be decoded", "`yard quarantine list` shows whether it is in quarantine; else report it, with the bytes at <place>", ""},
	{NewerRecord, "I13", "this program does not know the log version of a record", "use a newer `yard`; `yard upgrade status` shows the versions", ""},
	{StoreBehind, "I1", "a store ends before the position of a checkpoint or a cursor: it was restored from an older copy, or has lost its tail", inspectYourBackup, ""},
	{SnapshotMissing, "I1", "the snapshot that a checkpoint names is missing, or is not the one that was saved: no process can take the partition over", "restore all stores of the partition together from a backup", ""},
	{Quarantined, "", "a record could not be read, or a write was refused for good", "`yard quarantine get <item>`, then `yard quarantine redrive <item>` or `yard quarantine delete <item> --yes`", ""},
	{NoOwner, "", "no process serves a partition or shard: its tasks wait", "`yard status` shows which processes are ready; start one of this service", ""},
	{PartitionStopped, "I13", "a process released a partition, because it cannot read a record", "the log of that process says why; a newer program may read it", ""},
	{StreamMissing, "", "a stream or bucket of the cluster does not exist", "`yard provision` makes it again, empty: that is right for the hints of a matching shard; restore any other from a backup", ""},
	{StreamDiffers, "", "a stream or bucket has other settings than the provisioned ones", "`yard provision`", ""},
	{StreamOrphan, "", "a stream has a name of this system, but does not belong to this cluster", "`nats stream info <place>`; if it is of no use, `nats stream rm <place>`", ""},
	{ConsumerOrphan, "", "a durable consumer is on a stream, and no process of this system made it, or its owner is replaced", "`yard doctor --repair`", "deletes the consumer"},
	{SlotsLeaked, "I8", "a limit counts slots that no running attempt holds", "`yard doctor --repair`", "deletes the count of the limit; the shards count the running attempts again, and grant nothing until all have"},
	{SlotsMiscounted, "I8", "the sum of a limit differs from the sum of its entries", "`yard doctor --repair`", "deletes the count of the limit; the shards count the running attempts again, and grant nothing until all have"},
	{TableOrphan, "", "Redis has keys of a domain or a shard that does not exist", "`yard doctor --repair`", "deletes the keys"},
	{BatchMiscounted, "I1", "a completed batch has other ends than tasks: it completed too early, or counted an end twice", "`yard batch get <batch> --domain <domain>` shows what it counts; keep the logs of history and the frontends, and report it", ""},
	{BatchStuck, "", "a batch is unfinished, but its time is over", "`yard status` shows whether its partition has an owner; the log of that process says why it cannot write", ""},
	{CallbackMissing, "I1", "a batch is completed, but its callback was not submitted, or is lost", "`yard batch get <batch> --domain <domain>` has its counts: submit the callback by hand", ""},
	{ScheduleBroken, "", "a schedule makes no runs: it cannot be read, such as for a time zone that this machine does not know", "`yard schedule list --domain <domain>`, then put the schedule again, or delete it", ""},
	{ScheduleLate, "", "a run of a schedule was due some minutes ago, and no process has decided about it", "`yard status` shows whether a timer is ready, and whether the storage is full; a drain of its domain, tasklist, type or group has it wait", ""},
	{TableOutOfReach, "I5", "Redis has triggers that no shard would find after a restart", "do nothing at once: history sends the triggers again within minutes; report it", ""},
}

// Kinds are all kinds of findings, in the order of reports.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf is the kind of a code.
func KindOf(c Code) Kind {
	return kinds[rank(c)]
}

func rank(c Code) int { return slices.IndexFunc(kinds, func(k Kind) bool { return k.Code == c }) }
