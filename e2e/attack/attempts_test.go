package attack_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// attempt is one thing to try: to publish, with a reply subject or without, or to subscribe, with a
// queue group or without.
type attempt struct {
	subject, reply, body string
	subscribe            bool
	queue                string
}

func (a attempt) String() string {
	if a.subscribe {
		return "subscribe " + a.subject + " " + a.queue
	}
	return "publish " + a.subject + " " + a.reply
}

var (
	verbs = []string{
		"tasks.submit", "tasks.poll", "tasks.poll.mail", "tasks.poll.other", "tasks.complete", "tasks.fail", "tasks.heartbeat", "tasks.cancel", "tasks.update", "tasks.get", "tasks.list",
		"tasklists.describe", "tasklists.put", "tasklists.get", "tasklists.list", "tasklists.delete", "types.put", "types.get", "types.list", "types.delete",
		"tasklists.pollers", "limits.top", "tasklists.pause", "tasklists.resume", "types.pause", "types.resume",
		"tasklists.drain", "tasklists.purge", "tasklists.peek", "types.drain", "types.purge", "groups.put", "groups.get", "groups.list", "groups.delete",
		"groups.pause", "groups.resume", "groups.drain", "groups.purge",
		"limits.put", "limits.get", "limits.list", "limits.delete", "workers.list", "workers.drain", "workers.stop", "workers.resume",
		"batches.create", "batches.get", "batches.list", "batches.close", "batches.wait", "batches.cancel",
		"schedules.put", "schedules.get", "schedules.list", "schedules.delete", "schedules.pause", "schedules.resume", "schedules.trigger", "schedules.backfill", "schedules.next",
		"deadletters.list", "deadletters.count", "deadletters.get", "deadletters.redrive", "deadletters.purge",
		"keys.list", "keys.get", "keys.unblock", "keys.skip", "timers.count", "tasks.explain", "tasks.stuck", "tasks.end", "audit.list",
	}
	adminVerbs = []string{"domains.put", "domains.get", "domains.list", "domains.delete", "domains.pause", "domains.resume", "domains.drain", "domains.audit", "domains.top", "queues.list"}
	// streamCalls are the endpoints of the JetStream API that name a stream.
	streamCalls = []string{
		"STREAM.INFO.%s", "STREAM.CREATE.%s", "STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.PURGE.%s", "STREAM.MSG.GET.%s",
		"STREAM.MSG.DELETE.%s", "STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s", "STREAM.LEADER.STEPDOWN.%s", "STREAM.PEER.REMOVE.%s",
		"DIRECT.GET.%s", "DIRECT.GET.%s.$KV.YARD_CONFIG.secret.tokens", "CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.spy", "CONSUMER.CREATE.%s.spy.>",
		"CONSUMER.DURABLE.CREATE.%s.spy", "CONSUMER.NAMES.%s", "CONSUMER.LIST.%s", "CONSUMER.INFO.%s.owner-1", "CONSUMER.DELETE.%s.owner-1",
		"CONSUMER.MSG.NEXT.%s.owner-1", "CONSUMER.PAUSE.%s.owner-1",
	}
	accountCalls = []string{"INFO", "STREAM.NAMES", "STREAM.LIST", "META.LEADER.STEPDOWN", "ACCOUNT.PURGE.YARD", "SERVER.REMOVE"}
)

// places are all subjects of the engine's inside, that no one but services may publish or read.
func places(n topology.Partitioning) []string {
	id := ids.NewTaskID(time.UnixMilli(1_700_000_000_000), 0, 1)
	all := []string{topology.HintLoad, topology.HintTasklistLoad, topology.HintMissingTriggers, topology.HintFreed, topology.HintRestore, topology.HintSilent, topology.HintUse, topology.HintStored, topology.Dead(victim, "mail", id)}
	for p := range n.History {
		all = append(
			all, topology.Submit(p, ids.LaneFirst, victim, "mail"), topology.Submit(p, ids.LaneFirst, attacker, "mail"), topology.Event(p), topology.Fired(p), topology.UniqueKey(p, victim, "7"), topology.UniqueKey(p, attacker, "7"),
			topology.Timer(p, 5), topology.TimerFence(p), topology.Snapshot(p, 1, 1, 0), topology.ArchiveOf(p, victim), topology.ArchiveShared(p, 60),
			topology.ArchivePage(p, victim, 1), topology.ArchiveIndexed(p),
		)
		for _, verb := range []string{"events", "get", "list", "describe", "bookings", "undelivered", "retrigger", "workers", "keys"} {
			all = append(all, topology.HistoryCall(p, verb))
		}
		for _, verb := range []string{"fire", "get", "locate", "list", "describe"} {
			all = append(all, topology.TimerCall(p, verb))
		}
		for _, s := range permissions.Services() {
			all = append(all, topology.Quarantine(string(s), p))
		}
		all = append(all, topology.BucketSubject(topology.CheckpointsBucket, topology.HistoryCheckpoint(p)))
	}
	for m := range n.Matching {
		all = append(
			all, topology.Matching(m), topology.MatchingPoll(m, 1), topology.MatchingCall(m, "describe"),
			topology.BucketSubject(topology.CheckpointsBucket, topology.MatchingEpoch(m)),
		)
	}
	for _, key := range []string{
		topology.ClusterKey, topology.VersionKey, topology.TokenSecretKey, catalog.Domains.Key("", victim), catalog.Types.Key(attacker, "x"), catalog.Limits.Key(attacker, "x"),
		catalog.Pauses.Tasklists.Key(victim, "x"), catalog.Pauses.Types.Key(victim, "x"),
		catalog.Drains.Tasklists.Key(victim, "x"), catalog.Drains.Types.Key(victim, "x"),
		catalog.Pauses.Domains.Key("", victim), catalog.Drains.Domains.Key("", victim),
		catalog.Pauses.Groups.Key(victim, "x"), catalog.Drains.Groups.Key(victim, "x"),
	} {
		all = append(all, topology.BucketSubject(topology.ConfigBucket, key))
	}
	for _, s := range permissions.Services() {
		all = append(all, topology.BucketSubject(topology.MembersBucket, topology.MemberKey(string(s), "ghost")), topology.Health(string(s)))
	}
	return all
}

// commands are subjects of the NATS server.
func commands(n topology.Partitioning) []string {
	var streams, all []string
	for _, s := range topology.Streams(n) {
		streams = append(streams, s.Name)
	}
	for _, b := range topology.Buckets() {
		streams = append(streams, topology.BucketStream(b))
	}
	for _, s := range streams {
		for _, call := range streamCalls {
			all = append(all, "$JS.API."+fmt.Sprintf(call, s))
		}
		all = append(all, "$JS.ACK."+s+".owner-1.1.1.1.1.1", "$JS.FC."+s+".owner-1.x")
	}
	for _, call := range accountCalls {
		all = append(all, "$JS.API."+call)
	}
	return append(all, "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SRV.PING", "$SRV.INFO", "$SRV.STATS.yard-history")
}

// inboxes are those of others.
func inboxes() []string {
	return []string{
		topology.UserInbox(victim, "admin-test") + ".1", topology.OperatorInbox("test") + ".1", topology.ServiceInbox("matching") + ".v.0",
		topology.ServiceInbox("frontend") + ".1", "_INBOX.1", "_R_.1",
	}
}

// attempts are what no tenant may do.
func attempts(n topology.Partitioning) []attempt {
	var all []attempt
	publish := append(append(places(n), commands(n)...), inboxes()...)
	for _, verb := range verbs {
		publish = append(publish, topology.API(victim, verb))
	}
	for _, verb := range adminVerbs {
		publish = append(publish, topology.Admin(verb))
	}
	events := topology.TaskEvents(victim, topology.EventDead, "mail")
	publish = append(publish, events, topology.TaskEvents(attacker, topology.EventDead, "mail"), topology.CancelHint(victim), topology.CancelHint(attacker))
	for _, subject := range publish {
		all = append(all, attempt{subject: subject, body: "{}"})
	}
	// What permissions of a filter alone would let by, and where a consumer would push to.
	create := "$JS.API.CONSUMER.CREATE." + topology.HistoryStream(0)
	all = append(
		all,
		attempt{subject: create + ".spy", body: `{"stream_name":"YARD_HISTORY_0","config":{"name":"spy","filter_subjects":["yard.history.0.submit.>","yard.history.0.event"]}}`},
		attempt{subject: create, body: `{"stream_name":"YARD_HISTORY_0","config":{"deliver_subject":"_INBOX.t.` + attacker + `.spy"}}`},
		attempt{subject: "$JS.API.STREAM.CREATE.SPY", body: `{"name":"SPY","subjects":["yard.v1.>"]}`},
		attempt{subject: "$JS.API.STREAM.CREATE.SPY2", body: `{"name":"SPY2","sources":[{"name":"YARD_HISTORY_0"}]}`},
	)
	subscribe := append(append(places(n), inboxes()...),
		">", "*.>", "yard.>", "yard.*.>", "yard.history.>", "yard.rpc.>", "yard.rpc.*.*.*", "yard.v1.>", "$JS.>", "$JS.API.>", "$KV.>", "$SYS.>", "$SRV.>",
		"_INBOX.>", "_INBOX.*", "_INBOX.t.>", "_INBOX.t.*.>", "_INBOX.o.>", "_INBOX.s.>", topology.UserInbox(victim, ">"),
		events, topology.TaskEventsOf(victim), topology.TaskEventsAny, topology.CancelHint(victim),
		topology.APIOf(victim), topology.APIOf(attacker), topology.APIAny("tasks.submit"), topology.APIOf(topology.ReservedDomain), "$JS.EVENT.ADVISORY.>",
	)
	for _, subject := range subscribe {
		all = append(all, attempt{subject: subject, subscribe: true}, attempt{subject: subject, subscribe: true, queue: "yard-frontend"})
	}
	return all
}

// An endpoint of the API that no one attacks is not known to hold.
func TestEveryEndpointIsAttacked(t *testing.T) {
	text, err := os.ReadFile("../../contracts/asyncapi.json")
	testkit.NoError(t, err)
	found := regexp.MustCompile(`"address": *"yard\.v1\.(admin|\{domain\})\.([a-z.]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(found) < len(verbs) {
		t.Fatalf("%d endpoints were found", len(found))
	}
	for _, f := range found {
		known := verbs
		if f[1] == "admin" {
			known = adminVerbs
		}
		if !slices.Contains(known, f[2]) {
			t.Errorf("%s is not attacked", f[2])
		}
	}
}
