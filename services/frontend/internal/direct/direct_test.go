package direct

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// nowMS is the time of the tests.
const nowMS = 1_800_000_000_000

// settings stores an entry of the catalog.
type settings func(t *testing.T, kv *catalogtest.KV)

func put[M catalog.Settings](k catalog.Kind[M], domain string, m M) settings {
	return func(t *testing.T, kv *catalogtest.KV) {
		t.Helper()
		testkit.NoError(t, testkit.Err(k.Put(t.Context(), kv, domain, m)))
	}
}

func pause(k catalog.Kind[*yardv1.Pause], domain, name string, untilMS int64) settings {
	return func(t *testing.T, kv *catalogtest.KV) {
		t.Helper()
		testkit.NoError(t, testkit.Err(k.PutAs(t.Context(), kv, domain, name, &yardv1.Pause{SinceMs: 1, UntilMs: untilMS})))
	}
}

// with is the catalog of domain shop with some settings.
func with(t *testing.T, all ...settings) *catalog.Catalog {
	t.Helper()
	kv := catalogtest.New()
	c := catalog.New(nil)
	kv.OnChange = func(e jetstream.KeyValueEntry) { c.Take(e) }
	kv.Store(catalog.Domains.Key("", "shop"), `{"name":"shop"}`)
	for _, set := range all {
		set(t, kv)
	}
	return c
}

// record is that of a task which may start with its submit.
func record(change func(*logv1.Record)) *logv1.Record {
	r := &logv1.Record{Type: "mail", Tasklist: "main", Group: "blue", Policy: &logv1.Policy{MaxAttempts: 2, StartToCloseMs: 1000}}
	if change != nil {
		change(r)
	}
	return r
}

// TestMay: a task with a property, or under a setting, that stands between it and its start does not start.
func TestMay(t *testing.T) {
	if !May(with(t), "shop", record(nil), nowMS) {
		t.Fatal("a plain task does not start")
	}
	if May(with(t), "other", record(nil), nowMS) {
		t.Error("a task of an unknown domain starts")
	}
	for what, change := range map[string]func(*logv1.Record){
		"a due time":               func(r *logv1.Record) { r.DueAtMs = nowMS + 1 },
		"a delay":                  func(r *logv1.Record) { r.DelayMs = 1 },
		"an order key":             func(r *logv1.Record) { r.Order = &logv1.Order{} },
		"a batch":                  func(r *logv1.Record) { r.BatchId = "b" },
		"a unique key":             func(r *logv1.Record) { r.Unique = &logv1.Unique{} },
		"one attempt":              func(r *logv1.Record) { r.Policy.MaxAttempts = 1 },
		"no policy":                func(r *logv1.Record) { r.Policy = nil },
		"a bound on deliveries":    func(r *logv1.Record) { r.Policy.MaxDeliveries = 5 },
		"a rule for lost attempts": func(r *logv1.Record) { r.Policy.OnLost = 1 },
		"a rule for late attempts": func(r *logv1.Record) { r.Policy.OnTimeout = 1 },
	} {
		if May(with(t), "shop", record(change), nowMS) {
			t.Errorf("a task with %s starts", what)
		}
	}
	rate := &yardv1.Rate{Tasks: 1, PerMs: 1000}
	for what, set := range map[string]settings{
		"a limit of the domain":              put(catalog.Domains, "", &yardv1.Domain{Name: "shop", MaxConcurrency: 1}),
		"a limit per group of the domain":    put(catalog.Domains, "", &yardv1.Domain{Name: "shop", MaxConcurrencyPerGroup: 1}),
		"a rate of the domain":               put(catalog.Domains, "", &yardv1.Domain{Name: "shop", Rate: rate}),
		"a limit of the tasklist":            put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", MaxConcurrency: 1}),
		"a limit per group of the tasklist":  put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", MaxConcurrencyPerGroup: 1}),
		"a rate of the tasklist":             put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", Rate: rate}),
		"several partitions":                 put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", Partitions: 2}),
		"partitions that the engine chooses": put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "main", PartitionsMax: 4}),
		"a limit of the type":                put(catalog.Types, "shop", &yardv1.TaskType{Name: "mail", MaxConcurrency: 1}),
		"a limit per group of the type":      put(catalog.Types, "shop", &yardv1.TaskType{Name: "mail", MaxConcurrencyPerGroup: 1}),
		"a rate of the type":                 put(catalog.Types, "shop", &yardv1.TaskType{Name: "mail", Rate: rate}),
		"a shared limit":                     put(catalog.Types, "shop", &yardv1.TaskType{Name: "mail", Limits: []string{"both"}}),
		"a pause of the domain":              pause(catalog.Pauses.Domains, "", "shop", 0),
		"a pause of the tasklist":            pause(catalog.Pauses.Tasklists, "shop", "main", 0),
		"a pause of the type":                pause(catalog.Pauses.Types, "shop", "mail", 0),
		"a pause of the group":               pause(catalog.Pauses.Groups, "shop", "blue", nowMS+1),
	} {
		if May(with(t, set), "shop", record(nil), nowMS) {
			t.Errorf("a task under %s starts", what)
		}
	}
	for what, set := range map[string]settings{
		"a pause that is over":        pause(catalog.Pauses.Types, "shop", "mail", nowMS),
		"a pause of another group":    pause(catalog.Pauses.Groups, "shop", "red", 0),
		"a limit of another tasklist": put(catalog.Tasklists, "shop", &yardv1.Tasklist{Name: "other", MaxConcurrency: 1}),
	} {
		if !May(with(t, set), "shop", record(nil), nowMS) {
			t.Errorf("a task under %s does not start", what)
		}
	}
}

// TestBegin: the record names the worker and the last instant at which the log may store the start, and its token has the same nonce.
func TestBegin(t *testing.T) {
	r := record(nil)
	nonce := Begin(r, "w", "w-1", nowMS)
	s := r.Start
	if nonce == 0 || s.Nonce != nonce || s.Worker != "w" || s.WorkerId != "w-1" || s.NotAfterMs != nowMS+StoredWithin.Milliseconds() {
		t.Errorf("start %+v, nonce %d", s, nonce)
	}
	testkit.Equal(t, "token", Token(r, 7), ids.Token{Position: ids.NewPosition(7, ids.LaneFirst).InShared(), Version: 1, Nonce: nonce})
}

// TestTask: the worker gets everything that its submit says.
func TestTask(t *testing.T) {
	id := ids.NewTaskID(time.UnixMilli(nowMS), 0, 1)
	r := record(func(r *logv1.Record) {
		r.Payload, r.PayloadEncoding = []byte("x"), 1
		r.Headers = []*logv1.Header{{Name: "a", Value: "b"}}
		r.Policy.HeartbeatTimeoutMs = 300
		r.Priority, r.Cost = 3, 5
	})
	got := Task(r, id, "token")
	want := &yardv1.PolledTask{
		TaskId: id.String(), Token: "token", Type: "mail", Tasklist: "main", Priority: 3, Attempt: 1, MaxAttempts: 2, CreatedAtMs: id.Time().UnixMilli(),
		TimeoutMs: 1000, HeartbeatTimeoutMs: 300, Group: "blue", Cost: 5, Payload: &yardv1.Payload{Data: []byte("x"), Encoding: 1}, Headers: map[string]string{"a": "b"},
	}
	testkit.Equal(t, "task", got.String(), want.String())
	for within, timeout := range map[int64]int64{400: 400, 4000: 1000} {
		r.Expiry = &logv1.Expiry{FinishWithinMs: within}
		testkit.Equal(t, "timeout", Task(r, id, "").TimeoutMs, timeout)
	}
}
