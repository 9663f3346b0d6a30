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
	{TaskLost, "I1", "a task was accepted and its log is read past it, but it neither waits nor runs, and has no end in the archive", taskGet, ""},
	{FiredAndLost, "I10", "a waiting task counts as fired, but it is not in the log, does not wait again, and has no end in the archive", taskGet, ""},
	{FiredTwice, "I10", "one stay of a task in the timer store came back into the log twice", taskGet, ""},
	{Overdue, "I10", "a task waits in the timer store though it was due some minutes ago", "`yard status` shows whether a timer is ready, and whether the storage is full", ""},
	{TwoHomes, "I6", "a task waits in the timer store though the archive has its end: it would run again", "`yard task cancel <task> --domain <domain>`, and report it", ""},
	{EndedTwice, "I4", "the archive has two ends of a task, and they differ", taskGet, ""},
	{GrantedTwice, "I4", "the history of a task has two ends, or an attempt that began twice", taskGet, ""},
	{ArchiveGap, "I6", "a finished task is in the archive but not in its index: `yard task get` does not find it", "report it: the task itself is whole, at <place>", ""},
	{DeadLetterWithoutEnd, "I6", "a dead letter has no end in the archive", taskGet, ""},
	{EndWithoutDeadLetter, "I6", "a task ended dead and has no dead letter", "`yard task get <task> --domain <domain>` has the whole task: submit it again by hand", ""},
	{KeyVoid, "", "a unique key is kept by a task that never was, or ended long ago; the next submit of the key would find that out", "`yard doctor --repair`", "frees the key: writes that it is free in place of the word, if that is still the last one"},
	{KeyMissing, "I2", "a task waits, and the log does not say that it has its unique key: another one may get it", taskGet, ""},
	{Unreadable, "I13", "a stored record cannot be decoded", "`yard quarantine list` shows whether it was set apart; else report it, with the bytes at <place>", ""},
	{NewerRecord, "I13", "a record is of a log version that this program does not know", "use a newer `yard`; `yard upgrade status` shows the versions", ""},
	{StoreBehind, "I1", "a store ends before what a checkpoint or a cursor has seen of it: it was restored from an older copy, or has lost its tail", inspectYourBackup, ""},
	{Quarantined, "", "a record could not be read, or a write was refused for good, and waits to be looked at", "`yard quarantine get <item>`, then `yard quarantine redrive <item>` or `drop`", ""},
	{NoOwner, "", "no process serves a partition or shard: its tasks stand still", "`yard status` shows which processes are ready; start one of this service", ""},
	{PartitionStopped, "I13", "a process gave a partition up, since it met what it cannot read", "the log of that process says why; a newer program may read it", ""},
	{StreamMissing, "", "a stream or bucket of the cluster does not exist", "`yard provision` makes it again, empty: that is right for the hints of a matching shard; restore any other from a backup", ""},
	{StreamDiffers, "", "a stream or bucket has other settings than the provisioned ones", "`yard provision`", ""},
	{StreamOrphan, "", "a stream has a name of this system and is not of this cluster", "`nats stream info <place>`; if it is of no use, `nats stream rm <place>`", ""},
	{ConsumerOrphan, "", "a consumer that never goes by itself is on a stream, and no process of this system made it, or its owner is replaced", "`yard doctor --repair`", "deletes the consumer"},
	{SlotsLeaked, "I8", "slots of a limit are counted that no running attempt holds", "`yard doctor --repair`", "drops the limit's count; the shards count again what runs, and grant nothing until all have"},
	{SlotsMiscounted, "I8", "the sum of a limit is not what its entries say", "`yard doctor --repair`", "drops the limit's count; the shards count again what runs, and grant nothing until all have"},
	{TableOrphan, "", "Redis has keys of a domain or a shard that does not exist", "`yard doctor --repair`", "deletes the keys"},
	{BatchMiscounted, "I1", "what counts the tasks of a batch, and how they ended, does not fit what is stored: it may complete too early, or never", "`yard batch get <batch> --domain <domain>` shows what it counts; keep the logs of history and the frontends, and report it", ""},
	{BatchStuck, "", "a batch is not over, though all its tasks have ended or its time is over", "`yard status` shows whether its partition has an owner; the log of that process says why it cannot write", ""},
	{CallbackMissing, "I1", "a batch is completed, but its callback was not submitted, or is lost", "`yard batch get <batch> --domain <domain>` has its counts: submit the callback by hand", ""},
	{TableOutOfReach, "I5", "Redis has triggers that no shard would find after a restart", "nothing at once: history sends the triggers again within minutes; report it", ""},
}

// Kinds are all kinds of findings, in the order of reports.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf is the kind of a code.
func KindOf(c Code) Kind {
	return kinds[rank(c)]
}

func rank(c Code) int { return slices.IndexFunc(kinds, func(k Kind) bool { return k.Code == c }) }
