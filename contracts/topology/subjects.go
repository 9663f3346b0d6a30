package topology

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Public subjects: `yard.v1.<domain>.<noun>.<verb>`. The domain is a subject
// token of its own, so NATS permissions fence tenants.
const apiPrefix = "yard.v1."

// API is the subject of a domain's endpoint, such as API("shop", "tasks.submit").
func API(domain, endpoint string) string { return apiPrefix + domain + "." + endpoint }

// APIAny is what a frontend subscribes to: the endpoint of every domain.
func APIAny(endpoint string) string { return apiPrefix + "*." + endpoint }

// PollOf is where polls for one tasklist may go, so that NATS permissions fence workers inside a domain.
func PollOf(domain, tasklist string) string { return API(domain, "tasks.poll") + "." + tasklist }

// PollOfAny is PollOf of every domain and tasklist.
const PollOfAny = apiPrefix + "*.tasks.poll.*"

// TasklistOf returns the tasklist token of a subject of PollOf, or "".
func TasklistOf(subject string) string {
	const dots = 5 // yard.v1.<domain>.tasks.poll.<tasklist>
	if strings.Count(subject, ".") != dots {
		return ""
	}
	return subject[strings.LastIndexByte(subject, '.')+1:]
}

// CancelHint is where the workers of a domain hear that running tasks were cancelled (yardv1.CancelHint as JSON):
// core NATS, to all subscribers, lost without harm. A process that runs one of them sends a heartbeat, whose answer is the truth.
func CancelHint(domain string) string { return apiPrefix + domain + ".hint.cancel" }

// CancelHintAny filters those of all domains.
const CancelHintAny = apiPrefix + "*.hint.cancel"

// AliveHint is where the workers of a domain send signs of life (yardv1.WorkerAlive as JSON): core NATS, to every owner of history.
func AliveHint(domain string) string { return apiPrefix + domain + ".hint.alive" }

// AliveHintAny filters those of all domains.
const AliveHintAny = apiPrefix + "*.hint.alive"

// OutboxHint is where programs of a domain report that rows of their outbox wait: core NATS, to all relays of the domain, lost without harm.
func OutboxHint(domain string) string { return apiPrefix + domain + ".hint.outbox" }

// The kinds of TaskEvents. EventKinds describes them.
const (
	EventFinished = "finished"
	EventDead     = "dead"
	EventLate     = "late"
	EventStuck    = "stuck"
)

// EventKind is a kind of TaskEvents, and what it says of a task.
type EventKind struct{ Name, Means string }

// EventKinds are the kinds of TaskEvents.
func EventKinds() []EventKind {
	return []EventKind{
		{EventFinished, "the task was completed, was cancelled, or has expired"},
		{EventDead, "the task became a dead letter"},
		{EventLate, "the task is due, and has not started for longer than `late_after_ms` of the domain"},
		{EventStuck, "an attempt of the task runs for longer than `stuck_after_ms` of the domain"},
	}
}

// EventNames are the names of the kinds of TaskEvents.
func EventNames() (all []string) {
	for _, k := range EventKinds() {
		all = append(all, k.Name)
	}
	return all
}

// TaskEvents is where history publishes events of tasks (yardv1.DomainEvents as JSON): core NATS, to all subscribers, lost without harm.
// An empty kind or tasklist stands for all.
func TaskEvents(domain, kind, tasklist string) string {
	return apiPrefix + domain + ".events." + cmp.Or(kind, "*") + "." + cmp.Or(tasklist, "*")
}

// TaskEventsOf filters all events of a domain.
func TaskEventsOf(domain string) string { return apiPrefix + domain + ".events.>" }

// TaskEventsAny filters those of all domains.
const TaskEventsAny = apiPrefix + "*.events.>"

// APINouns are the nouns of a domain's endpoints: a user of a domain may publish below these, and not where history publishes events.
func APINouns() []string {
	return []string{"audit", "batches", "deadletters", "groups", "keys", "limits", "schedules", "tasklists", "tasks", "timers", "types", "workers"}
}

// APIPlanned are endpoints of versions to come: this one answers that it does not know them, so that a newer
// client need not take an older engine for one that is away.
func APIPlanned() []string {
	return []string{
		"tasks.redrive", "tasks.count", "tasks.purge",
		"tasklists.update",
		"types.describe",
		"groups.describe",
	}
}

// APIOf filters all endpoints of a domain, or of ReservedDomain.
func APIOf(domain string) string { return apiPrefix + domain + ".>" }

// APIAll filters the whole public API.
const APIAll = apiPrefix + ">"

// Admin is the subject of an administrative endpoint, such as
// Admin("domains.put"). `admin` is therefore no domain's name.
func Admin(endpoint string) string { return apiPrefix + ReservedDomain + "." + endpoint }

// ReservedDomain cannot be a domain's name: its subjects are administrative.
const ReservedDomain = "admin"

// DomainOf returns the domain token of a public subject, or "".
func DomainOf(subject string) string { return firstBehind(subject, apiPrefix) }

// firstBehind is the first of several tokens behind a prefix, or "".
func firstBehind(subject, prefix string) string {
	rest, ok := strings.CutPrefix(subject, prefix)
	token, _, several := strings.Cut(rest, ".")
	if !ok || !several {
		return ""
	}
	return token
}

// VerbOf returns what follows the domain token of a public subject, such as "tasks.submit", or "".
func VerbOf(subject string) string {
	domain := DomainOf(subject)
	if domain == "" {
		return ""
	}
	return subject[len(apiPrefix)+len(domain)+1:]
}

func num(n int) string { return strconv.Itoa(n) }

// History log of partition p.

// Submit is where a batch of tasks of one tasklist is appended.
func Submit(p int, lane ids.Lane, domain, tasklist string) string {
	return "yard.history." + num(p) + ".submit." + lane.String() + "." + domain + "." + tasklist
}

// SubmitShared is where a batch of tasks of several domains or tasklists is appended. A tasklist's
// subject has one token more, so no name collides with it.
func SubmitShared(p int, lane ids.Lane) string {
	return "yard.history." + num(p) + submitPart + lane.String() + ".shared"
}

// SubmitOf is where a batch of tasks of one domain and several tasklists is appended. No tasklist
// has this name.
func SubmitOf(p int, lane ids.Lane, domain string) string { return Submit(p, lane, domain, "+") }

// SubmitDomain filters the submits of one lane that are filed under a domain of their own.
func SubmitDomain(p int, lane ids.Lane, domain string) string { return Submit(p, lane, domain, ">") }

// SubmitsAt filters the submits of one lane that are filed at a place, or in a part of it.
func SubmitsAt(p int, lane ids.Lane, at ids.Place) string {
	switch {
	case at == "":
		return SubmitLane(p, lane)
	case at.Tasklist() == "":
		return SubmitDomain(p, lane, at.Domain())
	}
	return Submit(p, lane, at.Domain(), at.Tasklist())
}

// PlaceOfSubmit is where in its lane a submit is filed: at a tasklist; at a domain, if it has several tasklists or the tasks of
// a batch; or at "", where domains share it.
func PlaceOfSubmit(p int, subject string) ids.Place {
	inLane, ok := strings.CutPrefix(subject, "yard.history."+num(p)+submitPart)
	_, filed, _ := strings.Cut(inLane, ".")
	domain, tasklist, apart := strings.Cut(filed, ".")
	switch {
	case !ok, !apart:
		return ""
	case strings.HasPrefix(tasklist, "+"):
		return ids.PlaceOf(domain, "")
	}
	return ids.Place(filed)
}

// HistoryAny filters the whole log of partition p.
func HistoryAny(p int) string { return "yard.history." + num(p) + ".>" }

// SubmitAny filters the submits of partition p.
func SubmitAny(p int) string { return "yard.history." + num(p) + submitPart + ">" }

// SubmitLane filters all submits of one lane.
func SubmitLane(p int, lane ids.Lane) string {
	return "yard.history." + num(p) + ".submit." + lane.String() + ".>"
}

const submitPart = ".submit."

// IsSubmit tells submits from the log's other messages.
func IsSubmit(p int, subject string) bool {
	return strings.HasPrefix(subject, "yard.history."+num(p)+submitPart)
}

// LaneOf is the lane of a submit; ok is false for subjects that name none.
func LaneOf(p int, subject string) (lane ids.Lane, ok bool) {
	token, ok := strings.CutPrefix(subject, "yard.history."+num(p)+submitPart)
	if !ok {
		return 0, false
	}
	token, _, _ = strings.Cut(token, ".")
	for lane := range ids.Lane(ids.Lanes) {
		if lane.String() == token {
			return lane, true
		}
	}
	return 0, false
}

// Event is where the owner of partition p appends its turns (logv1.Turn).
func Event(p int) string { return "yard.history." + num(p) + ".event" }

// Fired holds the timer's firing cursor: only its last message counts.
func Fired(p int) string { return "yard.history." + num(p) + ".fired" }

// UniqueKey is where the log of partition p says which task has a unique key: only the last message counts.
// The subject has a digest of the key, since any text may be one. Its domain comes first, so that the keys of one can be listed.
func UniqueKey(p int, domain, key string) string {
	digest := uniqueDigest(domain, key)
	return "yard.history." + num(p) + ".key." + domain + "." + hex.EncodeToString(digest[:uniqueDigestBytes])
}

// UniqueWithin is the key by which UniqueKey knows the unique key of a task with an order key, "" = none: it counts among the tasks of that. No text
// is such a key, since it is not UTF-8.
func UniqueWithin(orderKey, key string) string {
	if orderKey == "" {
		return key
	}
	return "\xff" + strconv.Itoa(len(orderKey)) + "." + orderKey + key
}

// UniqueKeyAny filters what the log of partition p says about unique keys.
func UniqueKeyAny(p int) string { return "yard.history." + num(p) + ".key.>" }

// IsUniqueKey tells what the log says about unique keys from its other messages.
func IsUniqueKey(p int, subject string) bool {
	return strings.HasPrefix(subject, "yard.history."+num(p)+".key.")
}

// DomainOfUniqueKey is the domain of a subject of UniqueKey, or "".
func DomainOfUniqueKey(p int, subject string) string {
	return firstBehind(subject, "yard.history."+num(p)+".key.")
}

// UniqueKeyPartition is the history partition whose log has the tasks with this unique key.
func UniqueKeyPartition(domain, key string, n Partitioning) int {
	digest := uniqueDigest(domain, key)
	return int(binary.BigEndian.Uint64(digest[uniqueDigestBytes:]) % uint64(n.History))
}

// uniqueDigestBytes is how much of a digest names a key: no two keys are known whose digests begin with the same 16 bytes. What
// follows chooses the partition.
const uniqueDigestBytes = 16

// OrderKeyPartition is the history partition whose log has the tasks with this order key.
func OrderKeyPartition(domain, key string, n Partitioning) int {
	digest := sha256.Sum256([]byte("order\x00" + domain + "\x00" + key))
	return int(binary.BigEndian.Uint64(digest[:]) % uint64(n.History))
}

func uniqueDigest(domain, key string) [sha256.Size]byte {
	return sha256.Sum256([]byte(domain + "\x00" + key))
}

// Timer store.

// TimerBucketWidth is the span of due times that share a timer subject.
const TimerBucketWidth = time.Minute

// TimerBucket is the bucket of a due time, in buckets since the Unix epoch.
func TimerBucket(dueMS int64) int64 { return dueMS / TimerBucketWidth.Milliseconds() }

// Timer is the subject of one bucket of waiting tasks.
func Timer(p int, bucket int64) string {
	return "yard.timer." + num(p) + "." + strconv.FormatInt(bucket, 10)
}

// TimerAny filters all that waits in partition p.
func TimerAny(p int) string { return "yard.timer." + num(p) + ".*" }

// TimerFence is where the owners of history partition p append their fences: what
// an earlier owner writes behind one is void.
func TimerFence(p int) string { return "yard.timer." + num(p) + ".fence" }

// TimerBucketOf is the inverse of Timer; ok is false for other subjects.
func TimerBucketOf(subject string) (bucket int64, ok bool) {
	const prefix = "yard.timer."
	if !strings.HasPrefix(subject, prefix) {
		return 0, false
	}
	_, token, _ := strings.Cut(subject[len(prefix):], ".")
	bucket, err := strconv.ParseInt(token, 10, 64)
	return bucket, err == nil
}

// Snapshots.

// Snapshot is the subject of one chunk, from 0, of the snapshot of history partition p that the owner of an epoch made as of a turn.
func Snapshot(p int, epoch, turn uint64, chunk int) string {
	return snapshotChunk(p, epoch, turn, num(chunk))
}

// SnapshotChunks filters all chunks of one snapshot.
func SnapshotChunks(p int, epoch, turn uint64) string { return snapshotChunk(p, epoch, turn, "*") }

// SnapshotAny filters all snapshots of partition p.
func SnapshotAny(p int) string { return snapshotPrefix(p) + ">" }

// SnapshotOf is the inverse of Snapshot; ok is false for other subjects.
func SnapshotOf(p int, subject string) (epoch, turn uint64, chunk int, ok bool) {
	rest, _ := strings.CutPrefix(subject, snapshotPrefix(p))
	name, token, _ := strings.Cut(rest, ".")
	of, as, _ := strings.Cut(name, "-")
	epoch, epochErr := strconv.ParseUint(of, 10, 64)
	turn, turnErr := strconv.ParseUint(as, 10, 64)
	chunk, chunkErr := strconv.Atoi(token)
	return epoch, turn, chunk, epochErr == nil && turnErr == nil && chunkErr == nil && Snapshot(p, epoch, turn, chunk) == subject
}

func snapshotChunk(p int, epoch, turn uint64, chunk string) string {
	return snapshotPrefix(p) + strconv.FormatUint(epoch, 10) + "-" + strconv.FormatUint(turn, 10) + "." + chunk
}

func snapshotPrefix(p int) string { return "yard.snapshot." + num(p) + "." }

// Matching hints.

// Matching is where triggers and slot releases for shard m are published.
func Matching(m int) string { return "yard.matching." + num(m) }

// Archive.

// ArchiveAny filters the whole archive of partition p.
func ArchiveAny(p int) string { return "yard.archive." + num(p) + ".>" }

// ArchiveTasks filters the messages of finished tasks.
func ArchiveTasks(p int) string { return "yard.archive." + num(p) + ".tasks.>" }

// ArchiveOf is where finished tasks of one domain are filed if they fill a message.
func ArchiveOf(p int, domain string) string {
	return "yard.archive." + num(p) + ".tasks.of." + domain
}

// ArchiveShared is where finished tasks of all domains that keep them for so many
// seconds are filed, so that many small domains share a message.
func ArchiveShared(p int, retentionS int64) string {
	return "yard.archive." + num(p) + ".tasks.shared." + strconv.FormatInt(retentionS, 10)
}

// IsArchiveTasks tells messages of finished tasks from the archive's own marks.
func IsArchiveTasks(p int, subject string) bool {
	return strings.HasPrefix(subject, "yard.archive."+num(p)+".tasks.")
}

// ArchivePageDots is how many dots a subject of ArchivePage has that names one span.
const ArchivePageDots = 5

// ArchivePage is where the index of a domain's tasks that were created in one span is kept, behind the spans that
// contain it, the longest first.
func ArchivePage(p int, domain string, spans ...int64) string {
	subject := "yard.archive." + num(p) + ".index." + domain
	for _, span := range spans {
		subject += "." + strconv.FormatInt(span, 10)
	}
	return subject
}

// ArchiveIndexed marks that all tasks before its last message are in the index.
func ArchiveIndexed(p int) string { return "yard.archive." + num(p) + ".indexed" }

// Dead is where an exhausted task is kept whole.
func Dead(domain, tasklist string, id ids.TaskID) string {
	return "yard.dead." + domain + "." + tasklist + "." + id.String()
}

// DeadOf filters the dead letters of a task, whichever tasklist it is of.
func DeadOf(domain string, id ids.TaskID) string { return "yard.dead." + domain + ".*." + id.String() }

// DeadOfTasklist filters the dead letters of a tasklist.
func DeadOfTasklist(domain, tasklist string) string {
	return "yard.dead." + domain + "." + tasklist + ".*"
}

// DeadOfSubject is the inverse of Dead; ok is false for other subjects.
func DeadOfSubject(subject string) (domain string, id ids.TaskID, ok bool) {
	rest, ok := strings.CutPrefix(subject, "yard.dead.")
	domain, rest, cut := strings.Cut(rest, ".")
	_, token, named := strings.Cut(rest, ".")
	id, err := ids.ParseTaskID(token)
	return domain, id, ok && cut && named && err == nil
}

// DeadAny filters the dead letters of all domains.
const DeadAny = "yard.dead.>"

// Audit is where the frontends store what operators did in a domain, or with ReservedDomain in the cluster.
func Audit(domain string) string { return "yard.audit." + domain }

// AuditAny filters what operators did anywhere.
const AuditAny = "yard.audit.*"

// DeadFilter filters the dead letters of a domain.
func DeadFilter(domain string) string { return "yard.dead." + domain + ".>" }

// Quarantine.

const quarantinePrefix = "yard.quarantine."

// Quarantine is where a service keeps what it could not read or write of a partition.
func Quarantine(service string, p int) string { return quarantinePrefix + service + "." + num(p) }

// QuarantineFilter filters what is in quarantine by service and partition; an empty
// service and a negative partition stand for all.
func QuarantineFilter(service string, p int) string {
	partition := "*"
	service = cmp.Or(service, "*")
	if p >= 0 {
		partition = num(p)
	}
	return quarantinePrefix + service + "." + partition
}

// Calls between services: core NATS request/reply, answered by the owner of
// the partition or shard; no subscriber means no node owns it right now.

// HistoryCall is a call to the owner of history partition p, such as "get".
func HistoryCall(p int, verb string) string { return "yard.rpc.history." + num(p) + "." + verb }

// EventRequests is where services send batches of events (logv1.EventBatch) to the owner of history partition p.
func EventRequests(p int) string { return HistoryCall(p, "events") }

// MatchingCall is a call to the owner of matching shard m, such as "describe".
func MatchingCall(m int, verb string) string { return "yard.rpc.matching." + num(m) + "." + verb }

// MatchingPoll is where polls for shard m go while the owner of this epoch is the
// newest one that is open. No one else listens to it.
func MatchingPoll(m int, epoch uint64) string {
	return MatchingCall(m, "poll") + "." + strconv.FormatUint(epoch, 10)
}

// MatchingPollAny filters the polls for shard m, whatever the epoch.
func MatchingPollAny(m int) string { return MatchingCall(m, "poll") + ".*" }

// TimerCall is a call to the owner of timer partition p, such as "fire".
func TimerCall(p int, verb string) string { return "yard.rpc.timer." + num(p) + "." + verb }

// Health is where every process of a service answers how ready it is.
func Health(service string) string { return "yard.health." + service }

// Ping is where every process of a service answers any client of NATS that it lives.
func Ping(service string) string { return "$SRV.PING.yard-" + service }

// HintBranch carries rpcv1.Branches: what the owner of matching shard m learns of partitions below those that it serves. Core NATS, lost
// without harm.
func HintBranch(m int) string { return "yard.hint.branch." + num(m) }

// HintBranchAny filters those of all shards.
const HintBranchAny = "yard.hint.branch.*"

// Broadcast hints: core NATS, to all subscribers, lost without harm.
const (
	// HintLoad carries rpcv1.HistoryLoad: how much is queued in a history partition.
	HintLoad = "yard.hint.load"
	// HintGivenUp carries rpcv1.GivenUp: what was sent to these inboxes is lost.
	HintGivenUp = "yard.hint.given_up"
	// HintUse carries rpcv1.FrontendUse: what a frontend has let in of domains with a quota.
	HintUse = "yard.hint.use"
	// HintStored carries rpcv1.StoredTasks: what domains with a quota have waiting in a partition.
	HintStored = "yard.hint.stored"
	// HintSilent carries rpcv1.Silent: workers fell silent, or are drained, and get no more tasks by the polls that wait.
	HintSilent = "yard.hint.silent"
	// HintTasklistLoad carries rpcv1.TasklistLoad: what waits in the partitions of tasklists that have several.
	HintTasklistLoad = "yard.hint.tasklist_load"
	// HintMissingTriggers carries rpcv1.Hungry: a tasklist has idle pollers, and its table holds nothing for them.
	HintMissingTriggers = "yard.hint.hungry"
	// HintFreed carries rpcv1.Freed: slots of these limits were freed.
	HintFreed = "yard.hint.freed"
	// HintRestore carries rpcv1.Restore: limits lack the entries of some shards.
	HintRestore = "yard.hint.restore"
)
