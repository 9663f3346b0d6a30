package topology

import "time"

// Stream says what a JetStream stream is configured like; package provision
// creates it or refuses to start where the server's differs.
type Stream struct {
	Name     string
	Subjects []string
	// Memory streams hold hints only; the others are files.
	Memory bool
	// WorkQueue streams forget a message when it is acknowledged.
	WorkQueue bool
	// DiscardOld drops the oldest message when full; otherwise a full stream
	// refuses new ones, which a submitter hears as "known to have failed".
	DiscardOld bool
	// BytesMax bounds the stream; 0 = by disk only.
	BytesMax int64
	// PerSubject is how many messages of a subject stay, the last ones; 0 = all.
	PerSubject int64
	// AgeMax bounds how long messages stay; 0 = forever.
	AgeMax time.Duration
	// AtomicBatch allows several messages to be stored all or none.
	AtomicBatch bool
	// MessageTTL allows messages that expire on their own.
	MessageTTL bool
	// DedupeWindow is for how long a repeated Nats-Msg-Id is recognised.
	DedupeWindow time.Duration
}

// DedupeWindow of the history log bounds how long an append of unknown outcome
// may be repeated with the same Nats-Msg-Id.
const DedupeWindow = 2 * time.Minute

// RetentionMin is for how long every domain keeps its finished tasks: longer than a repeated submit looks for them.
const RetentionMin = 15 * time.Minute

// SubmitLatest is how long after the time in its id a task may be submitted to the log at the latest.
const SubmitLatest = DedupeWindow - 30*time.Second

// UniqueKeyKept is for how long the log says who had a unique key, once it is free: longer than a try to submit the task may still come.
const UniqueKeyKept = DedupeWindow

// HistoryStream is the name of the log of partition p.
func HistoryStream(p int) string { return "YARD_HISTORY_" + num(p) }

// TimerStream is the name of the waiting tasks' store of partition p.
func TimerStream(p int) string { return "YARD_TIMER_" + num(p) }

// SnapshotStream is the name of the snapshots of partition p.
func SnapshotStream(p int) string { return "YARD_SNAPSHOT_" + num(p) }

// MatchingStream is the name of the hint stream of shard m.
func MatchingStream(m int) string { return "YARD_MATCHING_" + num(m) }

// ArchiveStream is the name of the finished tasks' store of partition p.
func ArchiveStream(p int) string { return "YARD_ARCHIVE_" + num(p) }

// DeadLetterStream holds exhausted tasks of all domains.
const DeadLetterStream = "YARD_DEADLETTER"

// AuditStream holds what operators did: for each domain the last AuditEntries, for AuditKept.
const (
	AuditStream  = "YARD_AUDIT"
	AuditEntries = 500
	AuditKept    = 90 * 24 * time.Hour
)

// QuarantineStream holds what could not be read or written.
const QuarantineStream = "YARD_QUARANTINE"

// QuarantineDedupeWindow is so long because a record that cannot be read stays
// where it is and is met again at every takeover; in quarantine it is once.
const QuarantineDedupeWindow = 30 * 24 * time.Hour

// Streams lists every stream of a cluster.
func Streams(n Partitioning) []Stream {
	var all []Stream
	for p := range n.History {
		all = append(
			all,
			Stream{
				Name: HistoryStream(p), Subjects: []string{HistoryAny(p)},
				AtomicBatch: true, MessageTTL: true, DedupeWindow: DedupeWindow,
			},
			Stream{
				Name: TimerStream(p), Subjects: []string{TimerAny(p)},
				DedupeWindow: DedupeWindow,
			},
			Stream{
				Name: SnapshotStream(p), Subjects: []string{SnapshotAny(p)}, PerSubject: 1, DedupeWindow: DedupeWindow,
			},
			Stream{
				Name: ArchiveStream(p), Subjects: []string{ArchiveAny(p)},
				AtomicBatch: true, MessageTTL: true, DedupeWindow: DedupeWindow,
			},
		)
	}
	for m := range n.Matching {
		all = append(all, Hints(m))
	}
	return append(
		all,
		Stream{
			Name: DeadLetterStream, Subjects: []string{DeadAny}, DedupeWindow: DedupeWindow,
		},
		Stream{
			Name: AuditStream, Subjects: []string{AuditAny}, PerSubject: AuditEntries, AgeMax: AuditKept, DedupeWindow: DedupeWindow,
		},
		Stream{
			Name: QuarantineStream, Subjects: []string{quarantinePrefix + ">"},
			AtomicBatch: true, DedupeWindow: QuarantineDedupeWindow,
		},
	)
}

// Stored names every stream with what must survive, those behind the buckets too. The config bucket comes last:
// without it there is no cluster.
func Stored(n Partitioning) (names []string) {
	for _, s := range Streams(n) {
		if !s.Memory {
			names = append(names, s.Name)
		}
	}
	for _, bucket := range []string{CheckpointsBucket, MembersBucket, ConfigBucket} {
		names = append(names, BucketStream(bucket))
	}
	return names
}

// hintsBytesMax bounds a hint stream. The servers set it aside in memory at each replica, whether it
// is used or not.
const hintsBytesMax = 64 << 20

// Hints is the stream of triggers and slot releases of shard m.
func Hints(m int) Stream {
	return Stream{
		Name: MatchingStream(m), Subjects: []string{Matching(m)}, Memory: true, WorkQueue: true,
		DiscardOld: true, BytesMax: hintsBytesMax, DedupeWindow: time.Second,
	}
}
