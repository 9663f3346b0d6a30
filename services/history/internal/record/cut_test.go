package record

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestCut(t *testing.T) {
	var want []ids.TaskID
	b := &logv1.Batch{LogVersion: 1}
	for i := range 9 {
		id := ids.NewTaskID(time.UnixMilli(1e12), 0, uint64(i))
		want = append(want, id)
		b.Tasks = append(b.Tasks, &logv1.Record{Id: id[:], Domain: []string{"shop", "media", ""}[i%3], Payload: []byte("p"), Version: uint32(i)})
	}
	data, err := b.MarshalVT()
	testkit.NoError(t, err)
	all, err := Filed(data)
	if err != nil || len(all) != len(want) {
		t.Fatalf("%d ids, %v", len(all), err)
	}
	for i, id := range want {
		got, err := Cut(data, id)
		if err != nil || all[i].ID != id || all[i].Domain != b.Tasks[i].Domain || !proto.Equal(got, b.Tasks[i]) {
			t.Errorf("%d is %v, %v", i, got, err)
		}
	}
	if got, err := Cut(data, ids.NewTaskID(time.UnixMilli(1e12), 0, 99)); got != nil || err != nil {
		t.Errorf("one that is not there: %v, %v", got, err)
	}
	some, err := CutEach(data, func(id ids.TaskID) bool { return id == want[1] || id == want[8] })
	if err != nil || len(some) != 2 || !proto.Equal(some[0], b.Tasks[1]) || !proto.Equal(some[1], b.Tasks[8]) {
		t.Errorf("two of them: %v, %v", some, err)
	}
	if some, err := CutEach(data[:len(data)-3], func(ids.TaskID) bool { return true }); err == nil || len(some) != 8 {
		t.Errorf("of a message that ends early: %d, %v", len(some), err)
	}
	for n := 1; n < len(data); n++ { // cut anywhere: an error or fewer tasks, never a panic
		if all, err := Filed(data[:n]); err == nil && len(all) >= len(want) && n < len(data)-2 {
			t.Errorf("%d of %d bytes have all ids", n, len(data))
		}
	}
	for _, broken := range [][]byte{{0xff}, {10, 5, 1}, {10, 2, 10, 9}, {10, 3, 10, 1, 7}} {
		if _, err := Filed(broken); err == nil {
			t.Errorf("% x is taken for a batch", broken)
		}
	}
}

// TestWhatIsSetApartIsDatedOnce: out of the quarantine it is due when it was to be, and not void.
func TestWhatIsSetApartIsDatedOnce(t *testing.T) {
	const hour = time.Hour
	at := time.UnixMilli(1_700_000_000_000)
	id := ids.NewTaskID(at, 0, 1)
	r := &logv1.Record{Id: id[:], Domain: "shop", Tasklist: "bad name!", Type: "t", DelayMs: hour.Milliseconds(), WithinMs: 6000}
	_, bad, err := NewDecoder().Submits(testkit.Encoded(t, &logv1.Batch{Tasks: []*logv1.Record{r}, LogVersion: 1}), at)
	testkit.NoError(t, err)
	var apart logv1.Batch
	testkit.NoError(t, apart.UnmarshalVT(bad[0].Batch))
	again := apart.Tasks[0]
	Date(again, at.Add(2*hour))
	testkit.Equal(t, "is due", again.DueAtMs, at.Add(hour).UnixMilli())
	testkit.Equal(t, "is void", Late(again, at.Add(2*hour)), false)
}
