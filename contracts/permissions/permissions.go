package permissions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Permissions are allow lists of subjects, with wildcards; all else is refused.
type Permissions struct {
	Publish   []string
	Subscribe []string
}

// Of returns what a user may do on a cluster of this partitioning.
func Of(u User, n topology.Partitioning) (Permissions, error) {
	if _, err := ParseUser(u.String()); err != nil {
		return Permissions{}, err
	}
	if n.History < 1 || n.Matching < 1 || n.History > topology.PartitionsMax || n.Matching > topology.PartitionsMax {
		return Permissions{}, fmt.Errorf("%d history partitions and %d matching shards: want 1 to %d of each", n.History, n.Matching, topology.PartitionsMax)
	}
	var l lists
	switch u.Role {
	case Frontend:
		l.frontend(n)
	case History:
		l.history(n)
	case Matching:
		l.matching(n)
	case Timer:
		l.timer(n)
	case Provisioner:
		l.provisioner(n)
	case Inspector:
		l.inspector(n)
	case Operator:
		l.operator(n)
	case Observer:
		l.observer()
	default:
		l.tenant(u)
	}
	l.subscribe(u.Inbox() + ".>")
	slices.Sort(l.Publish)
	slices.Sort(l.Subscribe)
	return Permissions{Publish: slices.Compact(l.Publish), Subscribe: slices.Compact(l.Subscribe)}, nil
}

// lists are permissions that grow.
type lists struct{ Permissions }

func (l *lists) publish(subjects ...string)   { l.Publish = append(l.Publish, subjects...) }
func (l *lists) subscribe(subjects ...string) { l.Subscribe = append(l.Subscribe, subjects...) }

// Answers go to these.
const (
	anyTenant   = "_INBOX.t.>"
	anyOperator = topology.OperatorInboxes + ">"
	anyService  = topology.ServiceInboxes + ">"
)

// service is what all services do: they answer each other and operators' questions about their
// health, are micro services, send a heartbeat, and watch the domains.
func (l *lists) service(r Role) {
	l.publish(anyService, anyOperator)
	l.publish(topology.BucketSubject(topology.MembersBucket, topology.MemberKeys(string(r))))
	l.subscribe(topology.Health(string(r)), "$SRV.>")
	l.bucket(topology.MembersBucket)
	l.bucket(topology.ConfigBucket)
}

func (l *lists) frontend(n topology.Partitioning) {
	l.service(Frontend)
	l.publish(anyTenant, topology.CancelHintAny, topology.HintGivenUp, topology.HintBatchAny, topology.HintSilent, topology.HintUse)
	l.subscribe(topology.APIAll, topology.HintLoad, topology.HintTasklistLoad, topology.HintSilent, topology.HintUse, topology.HintStored, topology.HintGivenUp)
	for _, keys := range catalog.AllKeys() {
		l.publish(topology.BucketSubject(topology.ConfigBucket, keys))
	}
	l.bucket(topology.CheckpointsBucket) // the epochs of matching's owners
	for p := range n.History {
		l.publish(topology.SubmitAny(p), topology.UniqueKeyAny(p), topology.BatchAny(p), topology.ScheduleHomeAny(p))
		l.publish(api("STREAM.MSG.GET", topology.HistoryStream(p))) // what a repeated request stored, who has a unique key, batches and schedules
		l.publish(api("DIRECT.GET", topology.HistoryStream(p)))     // pages of batches
		l.publish(api("STREAM.INFO", topology.HistoryStream(p)))    // names of schedules
		l.publish(api("STREAM.MSG.GET", topology.ArchiveStream(p))) // how tasks of batches ended
		l.calls(p, topology.HistoryCall, "events", "get", "list", "describe", "workers", "keys", "stuck", "batch")
		l.calls(p, topology.TimerCall, "get", "list", "describe", "ahead")
	}
	l.deadLetters()
	l.publish(topology.AuditAny, api("DIRECT.GET", topology.AuditStream))
	for m := range n.Matching {
		l.publish(topology.MatchingPollAny(m))
		l.calls(m, topology.MatchingCall, "describe")
	}
}

func (l *lists) history(n topology.Partitioning) {
	l.service(History)
	l.subscribe(topology.HintMissingTriggers, topology.AliveHintAny, topology.HintBatchAny)
	l.publish(topology.HintLoad, topology.HintStored, topology.HintSilent, topology.HintBatchAny, topology.TaskEventsAny, topology.DeadAny, accountInfo)
	l.deadLetters()
	l.bucket(topology.CheckpointsBucket)
	l.publish(topology.BucketSubject(topology.CheckpointsBucket, topology.HistoryCheckpoints))
	for p := range n.History {
		log, waiting, archive := topology.HistoryStream(p), topology.TimerStream(p), topology.ArchiveStream(p)
		snapshots := topology.SnapshotStream(p)
		l.publish(topology.Event(p), topology.UniqueKeyAny(p), topology.TimerAny(p), topology.ArchiveAny(p), topology.Quarantine(string(History), p))
		l.publish(topology.BatchAny(p), topology.SubmitAny(p)) // a batch that is completed, and its callback
		l.stream(log)
		l.publish(api("STREAM.PURGE", log), api("DIRECT.GET", log))
		l.stream(waiting) // its tail, at a takeover
		l.stream(archive)
		l.publish(api("DIRECT.GET", archive))
		l.stream(snapshots)
		l.publish(topology.SnapshotAny(p), api("STREAM.PURGE", snapshots))
		l.calls(p, topology.TimerCall, "fire", "locate")
		l.calls(p, topology.HistoryCall, "batch") // how many tasks a batch has there
		for _, verb := range []string{"events", "get", "list", "describe", "bookings", "undelivered", "retrigger", "workers", "keys", "stuck", "batch"} {
			l.subscribe(topology.HistoryCall(p, verb))
		}
	}
	for m := range n.Matching {
		l.publish(topology.Matching(m))
	}
}

func (l *lists) matching(n topology.Partitioning) {
	l.service(Matching)
	l.publish(anyTenant) // hands out tasks
	hints := []string{topology.HintFreed, topology.HintRestore, topology.HintBranchAny}
	l.publish(append(hints, topology.HintMissingTriggers, topology.HintTasklistLoad)...)
	l.subscribe(append(hints, topology.HintGivenUp, topology.HintSilent)...)
	l.bucket(topology.CheckpointsBucket)
	l.publish(topology.BucketSubject(topology.CheckpointsBucket, topology.MatchingEpochs))
	for p := range n.History {
		l.calls(p, topology.HistoryCall, "events", "bookings", "undelivered", "retrigger")
	}
	for m := range n.Matching {
		s := topology.MatchingStream(m)
		l.stream(s)
		l.publish(api("CONSUMER.NAMES", s), "$JS.ACK."+s+".>", "$JS.ACK.*.*."+s+".>") // the second is how later servers spell it
		l.subscribe(topology.MatchingPollAny(m), topology.MatchingCall(m, "describe"))
	}
}

func (l *lists) timer(n topology.Partitioning) {
	l.service(Timer)
	l.publish(topology.HintStored, accountInfo)
	l.bucket(topology.CheckpointsBucket) // how far history has read
	for p := range n.History {
		log, waiting := topology.HistoryStream(p), topology.TimerStream(p)
		l.publish(topology.SubmitAny(p), topology.Fired(p), topology.TimerAny(p), topology.Quarantine(string(Timer), p))
		l.publish(topology.ScheduleHomeAny(p))
		l.publish(api("STREAM.MSG.GET", log), api("STREAM.PURGE", log))
		l.stream(log)                                     // schedules
		l.calls(p, topology.HistoryCall, "get", "events") // whether a run has ended, and to cancel it
		l.calls(p, topology.TimerCall, "get")
		l.stream(waiting)
		l.publish(api("STREAM.PURGE", waiting), api("DIRECT.GET", waiting))
		for _, verb := range []string{"fire", "get", "locate", "list", "describe", "ahead"} {
			l.subscribe(topology.TimerCall(p, verb))
		}
	}
}

func (l *lists) provisioner(n topology.Partitioning) {
	for _, s := range allStreams(n) {
		l.publish(api("STREAM.INFO", s), api("STREAM.CREATE", s), api("STREAM.UPDATE", s))
	}
	for m := range n.Matching { // one that is offline is created again
		l.publish(api("STREAM.DELETE", topology.MatchingStream(m)))
	}
	l.publish(streamNames) // which exist, though they do not answer
	// A backup, to a NATS that has none of these.
	for _, s := range topology.Stored(n) {
		l.publish(api("STREAM.RESTORE", s), "$JS.SNAPSHOT.RESTORE."+s+".*")
	}
	l.pings()
	l.publish(api("STREAM.MSG.GET", topology.BucketStream(topology.ConfigBucket)))
	for _, key := range []string{topology.ClusterKey, topology.VersionKey, topology.TokenSecretKey} {
		l.publish(topology.BucketSubject(topology.ConfigBucket, key))
	}
}

func (l *lists) inspector(n topology.Partitioning) {
	l.publish(streamNames)
	for _, s := range allStreams(n) {
		l.stream(s)
		l.publish(api("CONSUMER.LIST", s), "$JS.FC."+s+".>")
	}
	for p := range n.History {
		l.calls(p, topology.HistoryCall, "bookings")
		l.publish(topology.UniqueKeyAny(p))
	}
	for _, s := range topology.Stored(n) { // backups
		l.publish(api("STREAM.SNAPSHOT", s), "$JS.SNAPSHOT.ACK."+s+".>")
	}
	l.pings()
}

// pings ask whether a service lives.
func (l *lists) pings() {
	for _, s := range []Role{Frontend, History, Matching, Timer} {
		l.publish(topology.Ping(string(s)))
	}
}

func (l *lists) operator(n topology.Partitioning) {
	l.publish(topology.APIOf(topology.ReservedDomain))
	for _, s := range []Role{Frontend, History, Matching, Timer} {
		l.publish(topology.Health(string(s)))
	}
	// Upgrades.
	l.bucket(topology.ConfigBucket)
	l.bucket(topology.MembersBucket)
	l.publish(topology.BucketSubject(topology.ConfigBucket, topology.VersionKey))
	// Quarantine: an item goes back to the stream that it came from or was meant for.
	l.stream(topology.QuarantineStream)
	l.publish(api("STREAM.MSG.DELETE", topology.QuarantineStream))
	l.publish(topology.DeadAny)
	for p := range n.History {
		l.publish(topology.HistoryAny(p), topology.TimerAny(p), topology.ArchiveAny(p))
	}
}

// observer reads what is about the cluster.
func (l *lists) observer() {
	for _, verb := range adminReads {
		l.publish(topology.Admin(verb))
	}
	for _, s := range []Role{Frontend, History, Matching, Timer} {
		l.publish(topology.Health(string(s)))
	}
}

// adminReads are the administrative verbs that change nothing.
var adminReads = []string{"domains.audit", "domains.get", "domains.list", "domains.top", "queues.list"}

// Reads reports whether a verb of the API changes nothing.
func Reads(verb string) bool {
	if admin, ok := strings.CutPrefix(verb, topology.ReservedDomain+"."); ok {
		verb = admin
	}
	noun, do, _ := strings.Cut(verb, ".")
	return slices.Contains(reads[noun], do) || slices.Contains(adminReads, verb)
}

// reads are the verbs that change nothing, by noun.
var reads = map[string][]string{
	"audit": {"list"}, "batches": {"get", "list", "wait"}, "deadletters": {"count", "get", "list"}, "groups": {"get", "list"}, "keys": {"get", "list"}, "limits": {"get", "list", "top"},
	"schedules": {"get", "list", "next"}, "tasklists": {"describe", "get", "list", "peek", "pollers"}, "tasks": {"explain", "get", "list", "stuck"}, "timers": {"count"},
	"types": {"get", "list"}, "workers": {"list"},
}

func (l *lists) tenant(u User) {
	switch u.Role {
	case Submitter:
		for _, verb := range []string{"submit", "get", "cancel", "update"} {
			l.publish(topology.API(u.Domain, "tasks."+verb))
		}
		l.publish(topology.OutboxHint(u.Domain))
		l.subscribe(topology.TaskEventsOf(u.Domain), topology.OutboxHint(u.Domain))
	case Worker:
		for _, verb := range []string{"complete", "fail", "heartbeat"} {
			l.publish(topology.API(u.Domain, "tasks."+verb))
		}
		l.publish(topology.AliveHint(u.Domain))
		l.subscribe(topology.CancelHint(u.Domain))
		for _, tasklist := range u.TasklistNames() {
			l.publish(topology.PollOf(u.Domain, tasklist))
		}
		if u.Tasklists == "" {
			l.publish(topology.API(u.Domain, "tasks.poll"), topology.PollOf(u.Domain, "*"))
		}
	case Viewer:
		for noun, verbs := range reads {
			for _, verb := range verbs {
				l.publish(topology.API(u.Domain, noun+"."+verb))
			}
		}
		l.subscribe(topology.TaskEventsOf(u.Domain))
	case Admin:
		for _, noun := range topology.APINouns() {
			l.publish(topology.API(u.Domain, noun+".>"))
		}
		l.publish(topology.AliveHint(u.Domain), topology.OutboxHint(u.Domain))
		l.subscribe(topology.CancelHint(u.Domain), topology.TaskEventsOf(u.Domain), topology.OutboxHint(u.Domain))
	}
}

// deadLetters are those that are listed, redriven and purged.
func (l *lists) deadLetters() {
	s := topology.DeadLetterStream
	l.publish(api("STREAM.INFO", s), api("STREAM.MSG.GET", s), api("DIRECT.GET", s), api("STREAM.PURGE", s))
}

// allStreams are all of a cluster, with those of buckets.
func allStreams(n topology.Partitioning) (names []string) {
	for _, s := range topology.Streams(n) {
		names = append(names, s.Name)
	}
	for _, b := range topology.Buckets() {
		names = append(names, topology.BucketStream(b))
	}
	return names
}

// calls are requests to the owner of a partition or shard.
func (l *lists) calls(n int, subject func(n int, verb string) string, verbs ...string) {
	for _, verb := range verbs {
		l.publish(subject(n, verb))
	}
}

// Calls of the JetStream API that name no stream: what the account has stored and may store, so whether the
// log has room; and the names of all streams.
const (
	accountInfo = "$JS.API.INFO"
	streamNames = "$JS.API.STREAM.NAMES"
)

// api is a subject of the JetStream API.
func api(endpoint, stream string) string { return "$JS.API." + endpoint + "." + stream }

// stream reads a stream: single messages, and consumers of its own, ordered ones included.
func (l *lists) stream(s string) {
	l.publish(
		api("STREAM.INFO", s), api("STREAM.MSG.GET", s),
		api("CONSUMER.CREATE", s)+".>", api("CONSUMER.INFO", s)+".*", api("CONSUMER.DELETE", s)+".*", api("CONSUMER.MSG.NEXT", s)+".*",
	)
}

// bucket reads and watches a bucket.
func (l *lists) bucket(b string) {
	l.stream(topology.BucketStream(b))
	l.publish("$JS.FC." + topology.BucketStream(b) + ".>") // if nats.go watches
}
