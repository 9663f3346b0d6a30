package topology

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// What is stored, and what programs of other versions and users' permissions are written for, stays as it is spelled.
func TestNamesStayAsTheyAre(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1_700_000_000_000), 3, 7)
	for got, want := range map[string]string{
		API("shop", "tasks.submit"):              "yard.v1.shop.tasks.submit",
		APIAny("tasks.get"):                      "yard.v1.*.tasks.get",
		APIOf("shop"):                            "yard.v1.shop.>",
		Admin("domains.put"):                     "yard.v1.admin.domains.put",
		PollOf("shop", "mail"):                   "yard.v1.shop.tasks.poll.mail",
		CancelHint("shop"):                       "yard.v1.shop.hint.cancel",
		AliveHint("shop"):                        "yard.v1.shop.hint.alive",
		TaskEvents("shop", EventDead, "mail"):    "yard.v1.shop.events.dead.mail",
		TaskEventsOf("shop"):                     "yard.v1.shop.events.>",
		Submit(3, ids.LaneFirst, "shop", "mail"): "yard.history.3.submit.p1.shop.mail",
		SubmitShared(3, ids.LaneLater):           "yard.history.3.submit.later.shared",
		SubmitOf(3, ids.LaneLast, "shop"):        "yard.history.3.submit.p5.shop.+",
		SubmitDomain(3, ids.LaneFirst, "shop"):   "yard.history.3.submit.p1.shop.>",
		SubmitLane(3, ids.LaneFirst):             "yard.history.3.submit.p1.>",
		SubmitAny(3):                             "yard.history.3.submit.>",
		HistoryAny(3):                            "yard.history.3.>",
		Event(3):                                 "yard.history.3.event",
		Fired(3):                                 "yard.history.3.fired",
		Timer(3, 28_333_333):                     "yard.timer.3.28333333",
		TimerAny(3):                              "yard.timer.3.*",
		TimerFence(3):                            "yard.timer.3.fence",
		Snapshot(3, 17, 4711, 12):                "yard.snapshot.3.17-4711.12",
		SnapshotChunks(3, 17, 4711):              "yard.snapshot.3.17-4711.*",
		SnapshotAny(3):                           "yard.snapshot.3.>",
		Matching(2):                              "yard.matching.2",
		ArchiveAny(3):                            "yard.archive.3.>",
		ArchiveTasks(3):                          "yard.archive.3.tasks.>",
		ArchiveOf(3, "shop"):                     "yard.archive.3.tasks.of.shop",
		ArchiveShared(3, 3600):                   "yard.archive.3.tasks.shared.3600",
		ArchivePage(3, "shop"):                   "yard.archive.3.index.shop",
		ArchivePage(3, "shop", 5, 240):           "yard.archive.3.index.shop.5.240",
		ArchiveIndexed(3):                        "yard.archive.3.indexed",
		Dead("shop", "mail", id):                 "yard.dead.shop.mail." + id.String(),
		DeadFilter("shop"):                       "yard.dead.shop.>",
		Quarantine("history", 3):                 "yard.quarantine.history.3",
		QuarantineFilter("", -1):                 "yard.quarantine.*.*",
		QuarantineFilter("timer", 0):             "yard.quarantine.timer.0",
		QuarantineFilter("", 4):                  "yard.quarantine.*.4",
		HistoryCall(3, "get"):                    "yard.rpc.history.3.get",
		MatchingCall(2, "describe"):              "yard.rpc.matching.2.describe",
		MatchingPoll(2, 17):                      "yard.rpc.matching.2.poll.17",
		MatchingPollAny(2):                       "yard.rpc.matching.2.poll.*",
		TimerCall(3, "fire"):                     "yard.rpc.timer.3.fire",
		Health("history"):                        "yard.health.history",
		HistoryStream(3):                         "YARD_HISTORY_3",
		TimerStream(3):                           "YARD_TIMER_3",
		SnapshotStream(3):                        "YARD_SNAPSHOT_3",
		MatchingStream(2):                        "YARD_MATCHING_2",
		ArchiveStream(3):                         "YARD_ARCHIVE_3",
		BucketStream(ConfigBucket):               "KV_YARD_CONFIG",
		BucketSubject(ConfigBucket, ClusterKey):  "$KV.YARD_CONFIG.cluster",
		MemberKey("history", "n1"):               "history.n1",
		MemberKeys("history"):                    "history.*",
		HistoryCheckpoint(3):                     "history.3",
		MatchingEpoch(2):                         "matching.2",
		HeadsKey("shop", "mail", 1):              "yard:{shop}:tl:mail:1:heads",
		ColumnKey("shop", "mail", 1, 2, "ready"): "yard:{shop}:tl:mail:1:col:2:ready",
		TasklistsKey("shop", 2):                  "yard:{shop}:tasklists:2",
		SlotsKey("shop", "email.send"):           "yard:{shop}:slots:email.send",
		RateKey("shop", "email.send"):            "yard:{shop}:rate:email.send",
		EpochKey("shop", 2):                      "yard:{shop}:epoch:2",
	} {
		if got != want {
			t.Errorf("%s is spelled %s", want, got)
		}
	}
}

// What a name is made of is read back from it, and from no other.
func TestNamesAreReadBack(t *testing.T) {
	for subject, want := range map[string][2]string{ // domain, verb
		API("shop", "tasks.submit"): {"shop", "tasks.submit"}, Admin("domains.get"): {ReservedDomain, "domains.get"},
		"yard.v1.": {}, "yard.v1.shop": {}, "yard.v2.shop.x": {}, Event(3): {}, "": {},
	} {
		if d, v := DomainOf(subject), VerbOf(subject); d != want[0] || v != want[1] {
			t.Errorf("%s is %q of %q", subject, v, d)
		}
	}
	for subject, want := range map[string]string{PollOf("shop", "mail"): "mail", API("shop", "tasks.poll"): "", PollOf("shop", "mail") + ".x": "", "": ""} {
		if got := TasklistOf(subject); got != want {
			t.Errorf("the tasklist of %s is %q", subject, got)
		}
	}
	for subject, want := range map[string]ids.Place{
		Submit(3, ids.LaneFirst, "shop", "mail"): "shop.mail", SubmitOf(3, ids.LaneLater, "shop"): "shop", SubmitBatch(3, ids.LaneFirst, "shop", "b"): "shop",
		SubmitShared(3, ids.LaneFirst): "", Submit(4, ids.LaneFirst, "shop", "mail"): "", Event(3): "", "": "",
	} {
		if got := PlaceOfSubmit(3, subject); got != want {
			t.Errorf("the place of %s is %q", subject, got)
		}
	}
	for at, want := range map[ids.Place]string{
		"": SubmitLane(3, ids.LaneFirst), "shop": SubmitDomain(3, ids.LaneFirst, "shop"), "shop.mail": Submit(3, ids.LaneFirst, "shop", "mail"),
	} {
		if got := SubmitsAt(3, ids.LaneFirst, at); got != want {
			t.Errorf("what is filed at %s is %s", at, got)
		}
	}
	for key, want := range map[string]bool{MemberKey("history", "n1"): true, "history": false, ".n1": false, "history.": false, "": false} {
		if s, n, ok := MemberOfKey(key); ok != want || ok && (s != "history" || n != "n1") {
			t.Errorf("%s is %q of %q, %v", key, n, s, ok)
		}
	}
	for subject, want := range map[string]int64{Timer(3, 12): 12, Timer(0, -1): -1} {
		if got, ok := TimerBucketOf(subject); !ok || got != want {
			t.Errorf("%s is bucket %d, %v", subject, got, ok)
		}
	}
	for _, subject := range []string{TimerFence(3), TimerAny(3), "yard.timer.3", Event(3), ""} {
		if got, ok := TimerBucketOf(subject); ok {
			t.Errorf("%s is bucket %d", subject, got)
		}
	}
	if epoch, turn, chunk, ok := SnapshotOf(3, Snapshot(3, 17, math.MaxUint64, 12)); epoch != 17 || turn != math.MaxUint64 || chunk != 12 || !ok {
		t.Errorf("a chunk is number %d of the snapshot %d-%d, %v", chunk, epoch, turn, ok)
	}
	for _, subject := range []string{
		Snapshot(2, 1, 2, 3), SnapshotAny(3), SnapshotChunks(3, 1, 2), "yard.snapshot.3.1-2", "yard.snapshot.3.1.2", "yard.snapshot.3.1-2.3.4", "yard.snapshot.3.01-2.3", Timer(3, 12), "",
	} {
		if epoch, turn, chunk, ok := SnapshotOf(3, subject); ok {
			t.Errorf("%s is chunk %d of the snapshot %d-%d", subject, chunk, epoch, turn)
		}
	}
	if TimerBucket(59_999) != 0 || TimerBucket(60_000) != 1 {
		t.Error("a bucket is a minute")
	}
}

// Each stream has subjects of its own, what must last is in files, and what may be repeated is recognised.
func TestStreamsShareNothing(t *testing.T) {
	n := Partitioning{History: 2, Matching: 3}
	all := Streams(n)
	if len(all) != 4*n.History+n.Matching+3 {
		t.Errorf("%d streams", len(all))
	}
	names, subjects := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if names[s.Name] || len(s.Subjects) != 1 || subjects[s.Subjects[0]] {
			t.Errorf("%s with %v is there twice", s.Name, s.Subjects)
		}
		names[s.Name], subjects[s.Subjects[0]] = true, true
		hints := strings.HasPrefix(s.Name, "YARD_MATCHING_")
		if s.Memory != hints || s.WorkQueue != hints || s.DiscardOld != hints || (s.BytesMax > 0) != hints || s.DedupeWindow == 0 {
			t.Errorf("%+v", s)
		}
		if audit := s.Name == AuditStream; (s.AgeMax > 0) != audit || (s.PerSubject > 1) != audit { // all others keep messages until somebody removes them
			t.Errorf("%+v", s)
		}
		if (s.PerSubject == 1) != strings.HasPrefix(s.Name, "YARD_SNAPSHOT_") {
			t.Errorf("%+v", s)
		}
		if log := strings.HasPrefix(s.Name, "YARD_HISTORY_") || strings.HasPrefix(s.Name, "YARD_ARCHIVE_"); s.MessageTTL != log || log && (!s.AtomicBatch || s.DedupeWindow != DedupeWindow) {
			t.Errorf("%+v", s)
		}
	}
	if SubmitLatest >= DedupeWindow || RetentionMin <= DedupeWindow {
		t.Error("a submit that is repeated must still be recognised, and its task be there")
	}
	if Hints(1).Name != MatchingStream(1) || !slices.Equal(Buckets(), []string{ConfigBucket, MembersBucket, CheckpointsBucket}) {
		t.Error("streams and buckets have other names")
	}
	if p := DefaultPartitioning(); p.History != 4 || p.Matching != 4 {
		t.Errorf("a new cluster has %+v", p)
	}
}

// A user of Redis may do what the tables need on keys of ours, and nothing that reads or empties all of it.
func TestTheUserOfRedisIsBounded(t *testing.T) {
	line := RedisACL("yard", "ab12")
	if !strings.HasPrefix(line, "user yard on #ab12 resetchannels resetkeys ~yard:* -@all +") {
		t.Errorf("%s", line)
	}
	words := strings.Fields(line)
	for _, needed := range []string{"+evalsha", "+script|load", "+hset", "+zadd", "+cluster|slots"} {
		if !slices.Contains(words, needed) {
			t.Errorf("it lacks %s", needed)
		}
	}
	for _, word := range words {
		for _, wrong := range []string{"+@", "+keys", "+flush", "+config", "+acl", "+eval ", "+shutdown", "+cluster ", "~*"} {
			if strings.HasPrefix(word+" ", wrong) {
				t.Errorf("it has %s", word)
			}
		}
	}
}

func TestTableKeysAreReadBack(t *testing.T) {
	for key, want := range map[string]TableKey{
		HeadsKey("shop", "mail", 3):               {"shop", "tl", "mail:3:heads"},
		ColumnKey("shop", "mail", 0, 2, "a:b"):    {"shop", "tl", "mail:0:col:2:a:b"},
		TasklistsKey("shop", 7):                   {"shop", "tasklists", "7"},
		SlotsKey("shop", "type/a"):                {"shop", "slots", "type/a"},
		PerGroupKey("shop", "type/a/group"):       {"shop", "pergroup", "type/a/group"},
		GroupSlotsKey("shop", "type/a/group/b:c"): {"shop", "group", "type/a/group/b:c"},
		RateKey("shop", "rate/type/a"):            {"shop", "rate", "rate/type/a"},
		EpochKey("shop", 1):                       {"shop", "epoch", "1"},
	} {
		if got, ok := TableKeyOf(key); !ok || got != want {
			t.Errorf("%s is %+v %v, want %+v", key, got, ok, want)
		}
	}
	for _, key := range []string{"", "yard:{}:epoch:1", "yard:{shop}:epoch", "yard:shop:epoch:1", "other:{shop}:epoch:1"} {
		if got, ok := TableKeyOf(key); ok {
			t.Errorf("%q is read as %+v", key, got)
		}
	}
	type table struct {
		list      string
		partition int
		column    string
		ok        bool
	}
	for key, want := range map[string]table{
		HeadsKey("shop", "mail", 3):            {"mail", 3, "", true},
		ColumnKey("shop", "mail", 0, 2, "a:b"): {"mail", 0, "2:a:b", true},
		EpochKey("shop", 1):                    {},
	} {
		k, _ := TableKeyOf(key)
		var got table
		if got.list, got.partition, got.column, got.ok = k.TableOfKey(); got != want {
			t.Errorf("%s is %+v, want %+v", key, got, want)
		}
	}
}

func TestSubjectsOfDeadLettersAndKeysAreReadBack(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1_800_000_000_000), 3, 9)
	if domain, got, ok := DeadOfSubject(Dead("shop", "mail", id)); domain != "shop" || got != id || !ok {
		t.Errorf("a dead letter is of %s, %v, %v", domain, got, ok)
	}
	for _, subject := range []string{"yard.dead.shop", "yard.dead.shop.mail", "yard.dead.shop.mail.x", "dead.shop.mail." + id.String()} {
		if _, _, ok := DeadOfSubject(subject); ok {
			t.Errorf("%q is taken for a dead letter", subject)
		}
	}
	key := UniqueKey(3, "shop", "order 1")
	if !IsUniqueKey(3, key) || DomainOfUniqueKey(3, key) != "shop" {
		t.Errorf("%s is not known again", key)
	}
	for _, subject := range []string{Event(3), Fired(3), UniqueKey(2, "shop", "order 1"), SubmitShared(3, 1)} {
		if IsUniqueKey(3, subject) {
			t.Errorf("%q is taken for a unique key", subject)
		}
	}
}
