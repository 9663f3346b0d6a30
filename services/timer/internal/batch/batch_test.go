package batch

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func drawRecord(t *rapid.T) *logv1.Record {
	id := ids.NewTaskID(time.UnixMilli(1), 1, rapid.Uint64().Draw(t, "id"))
	name := rapid.StringMatching(`[a-z]{1,8}`)
	var order *logv1.Order
	if rapid.Bool().Draw(t, "keyed") {
		order = &logv1.Order{Key: name.Draw(t, "key")}
	}
	return &logv1.Record{
		Order: order,
		Id:    id[:], Domain: name.Draw(t, "domain"), Tasklist: name.Draw(t, "tasklist"), Type: name.Draw(t, "type"),
		Priority: rapid.Int32Range(-1, 7).Draw(t, "priority"), Payload: rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		Policy: &logv1.Policy{Backoff: 2.5, MaxAttempts: 3}, DueAtMs: rapid.Int64().Draw(t, "due"),
		State: 3, Failures: rapid.Int32Range(0, 2).Draw(t, "failures"), Parkings: rapid.Uint32().Draw(t, "parkings"),
		Steps: []*logv1.Step{{Kind: 1, AtMs: 2}},
	}
}

func TestDecodeReadsWhatTheGeneratedCodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &logv1.Batch{
			Early: [][]byte{make([]byte, 16)}, EarlyParkings: []uint32{rapid.Uint32().Draw(t, "early")}, LogVersion: logversion.Newest(),
			EarlySeqs: []uint64{rapid.Uint64().Draw(t, "seq")}, EarlyIndexes: []uint32{rapid.Uint32().Draw(t, "index")},
			EarlyBytes: []uint32{rapid.Uint32().Draw(t, "bytes")}, EarlyDomain: "shop", EarlyTasklist: "mail",
			Epoch: rapid.Uint64().Draw(t, "epoch"), Fence: rapid.Bool().Draw(t, "fence"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			want.Tasks = append(want.Tasks, drawRecord(t))
		}
		data := testkit.Encoded(t, want)
		m, index, err := Decode(data)
		tasks := index.Tasks
		if index.Version != want.LogVersion || index.Malformed != nil {
			t.Fatalf("version %d, malformed: %v", index.Version, index.Malformed)
		}
		if err != nil || len(tasks) != len(want.Tasks) || len(index.Early) != 1 || m.Records() != len(tasks) {
			t.Fatalf("%d tasks, %d early: %v", len(tasks), len(index.Early), err)
		}
		if index.Epoch != want.Epoch || index.Fence != want.Fence {
			t.Fatalf("epoch %d, fence %v", index.Epoch, index.Fence)
		}
		var records [][]byte
		for i, r := range want.Tasks {
			priority := uint8(3)
			if r.Priority >= 1 && r.Priority <= 5 {
				priority = uint8(r.Priority)
			}
			record, err := r.MarshalVT()
			if err != nil || !bytes.Equal(m.Record(uint32(i)), record) {
				t.Fatalf("record %d was cut badly: %v", i, err)
			}
			if got, want := tasks[i], (due.Task{
				ID: ids.TaskID(r.Id), DueMS: max(r.DueAtMs, 0), Parkings: r.Parkings, Bytes: uint32(len(record)), Failures: int(r.Failures),
				Group: due.Group{Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, Priority: priority, Retry: r.Failures > 0, Keyed: r.Order != nil},
			}); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
			records = append(records, m.Record(uint32(i)))
		}
		if m.Record(uint32(len(tasks))) != nil {
			t.Fatal("a record behind the last one")
		}
		joined := &logv1.Batch{}
		testkit.NoError(t, joined.UnmarshalVT(append(Join(records, want.LogVersion), Early(due.EarlyMessage{Domain: index.Domain, Tasklist: index.Tasklist, All: index.Early}, want.LogVersion)...)))
		if want.Epoch, want.Fence = 0, false; !proto.Equal(want, joined) {
			t.Fatal("cut and joined it is another batch")
		}
		split, err := Split(data)
		if err != nil || split.Records() != m.Records() {
			t.Fatalf("split: %v", err)
		}
	})
}

func TestDecodeRefusesWhatIsNoBatch(t *testing.T) {
	for name, data := range map[string][]byte{"cut off": {0x0a, 9, 1}, "no tag": {0xff}} {
		if m, _, err := Decode(data); err == nil || m.Records() != 0 {
			t.Errorf("%s: decoded", name)
		}
	}
}

// TestTheGoodOfABadBatch: one malformed record or early stay does not take the
// others with it, and those keep their places. R19.
func TestTheGoodOfABadBatch(t *testing.T) {
	good := ids.NewTaskID(time.UnixMilli(1), 1, 7)
	data, err := (&logv1.Batch{
		Tasks: []*logv1.Record{
			{Domain: "shop", Tasklist: "mail", Type: "x"},
			{Id: good[:], Domain: "shop", Tasklist: "mail", Type: "x", DueAtMs: 5},
			{Id: []byte("short")},
		},
		Early: [][]byte{{1, 2}, good[:]}, EarlyParkings: []uint32{1, 2},
		EarlySeqs: []uint64{3, 4}, EarlyIndexes: []uint32{5, 6}, EarlyBytes: []uint32{7, 8},
	}).MarshalVT()
	testkit.NoError(t, err)
	m, index, err := Decode(data)
	if err != nil || index.Malformed == nil || m.Records() != 3 {
		t.Fatalf("%d records, %v, %v", m.Records(), index.Malformed, err)
	}
	if len(index.Tasks) != 3 || index.Tasks[0] != (due.Task{}) || index.Tasks[1].ID != good || index.Tasks[2] != (due.Task{}) {
		t.Errorf("%+v", index.Tasks)
	}
	if !slices.Equal(index.Early, []due.Early{
		{Generation: 1, Place: far.Place{Seq: 3, Index: 5}, Bytes: 7}, {ID: good, Generation: 2, Place: far.Place{Seq: 4, Index: 6}, Bytes: 8},
	}) {
		t.Errorf("%v", index.Early)
	}
}

// R19: a record that no submit lane has a subject for is malformed. It could never be fired, and
// all that is due after it would wait.
func TestARecordWithoutASubjectIsMalformed(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 7)
	for _, name := range []string{"", "a b", "a.b", ">", "*", "a\r\nb", "\xff", strings.Repeat("a", ids.NameBytesMax+1)} {
		for what, r := range map[string]*logv1.Record{
			"domain":   {Id: id[:], Domain: name, Tasklist: "mail", Type: "x"},
			"tasklist": {Id: id[:], Domain: "shop", Tasklist: name, Type: "x"},
			"type":     {Id: id[:], Domain: "shop", Tasklist: "mail", Type: name},
		} {
			data := testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{r}})
			m, index, err := Decode(data)
			bad := what != "type" || ids.CheckTypeName(name) != nil
			if err != nil || m.Records() != 1 || (index.Malformed != nil) != bad || (index.Tasks[0] == due.Task{}) != bad {
				t.Errorf("%s %q: %+v, %v, %v", what, name, index.Tasks, index.Malformed, err)
			}
		}
	}
}

// TestI13ABatchOfAnUnknownVersionIsRefused, however it looks otherwise. R21.
func TestI13ABatchOfAnUnknownVersionIsRefused(t *testing.T) {
	next := logversion.Newest() + 1
	id := ids.NewTaskID(time.UnixMilli(1), 1, 7)
	for name, b := range map[string]*logv1.Batch{
		"well-formed": {Tasks: []*logv1.Record{{Id: id[:]}}, LogVersion: next},
		"strange":     {Tasks: []*logv1.Record{{Id: []byte("another kind of id")}}, LogVersion: next},
		"empty":       {LogVersion: 1 << 31},
	} {
		data := testkit.Encoded(t, b)
		m, index, err := Decode(data)
		var unknown *logversion.UnknownError
		if !errors.As(err, &unknown) || m.Records() != 0 || len(index.Tasks) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEarlyMessageNamesItsStays(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 7)
	m := due.EarlyMessage{Domain: "shop", Tasklist: "mail", All: []due.Early{
		{ID: id, Generation: 3, Place: far.Place{Seq: 1 << 40, Index: 7}, Bytes: 300}, {ID: id, Generation: 700},
	}}
	_, index, err := Decode(Early(m, 1))
	if err != nil || index.Malformed != nil || !slices.Equal(index.Early, m.All) || index.Domain != m.Domain || index.Tasklist != m.Tasklist {
		t.Errorf("%v, %v, %v", index.Early, index.Malformed, err)
	}
	broken := testkit.Encoded(t, &logv1.Batch{Early: [][]byte{id[:]}})
	for _, data := range [][]byte{broken, append(broken, 6<<3|2, 1, 0x80)} {
		if _, index, err := Decode(data); err != nil || index.Malformed == nil {
			t.Errorf("%x: %v, %v", data, index.Malformed, err)
		}
	}
}

// TestVersionsAreWrittenLikeTheGeneratedCodeDoes.
func TestVersionsAreWrittenLikeTheGeneratedCodeDoes(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(1), 1, 7)
	for _, v := range []uint32{1, 2, 300, 1<<32 - 1} {
		early := testkit.Encoded(t, &logv1.Batch{
			Early: [][]byte{id[:]}, LogVersion: v, EarlyParkings: []uint32{1}, EarlySeqs: []uint64{2}, EarlyIndexes: []uint32{3}, EarlyBytes: []uint32{4},
			EarlyDomain: "shop", EarlyTasklist: "mail",
		})
		m := due.EarlyMessage{Domain: "shop", Tasklist: "mail", All: []due.Early{{ID: id, Generation: 1, Place: far.Place{Seq: 2, Index: 3}, Bytes: 4}}}
		if got := Early(m, v); !bytes.Equal(got, early) || len(appendVersion(nil, v)) > versionOverhead {
			t.Errorf("%d: %x, want %x", v, got, early)
		}
		record := &logv1.Record{Id: id[:]}
		submit := testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{record}, LogVersion: v})
		data := testkit.Encoded(t, record)
		if got := Join([][]byte{data}, v); !bytes.Equal(got, submit) {
			t.Errorf("%d: %x, want %x", v, got, submit)
		}
	}
}
