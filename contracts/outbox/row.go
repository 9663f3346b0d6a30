package outbox

import (
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

// The lanes of a domain. Tasks without a key have the first plainLanes, tasks with one the others.
const lanes, plainLanes = 16, 8

// Limits of a row and of a request. The engine takes 1000 tasks in a request, and NATS 1 MiB by default.
const (
	tasksMax        = 1000
	rowBytesMax     = 512 << 10
	requestBytesMax = 900 << 10
	payloadBytesMax = 256 << 10
)

// taskOverhead is what a task takes in its request besides itself, bytes.
const taskOverhead = 5

// headerID is the header of a task that has its outbox id.
const headerID = "outbox-id"

// State is where a row is.
type State int

// The states.
const (
	// Waiting rows are sent by the next relay.
	Waiting State = iota
	// Refused rows are set aside: the engine refused them for good.
	Refused
	// Unknown rows are set aside: they were sent, and no one can find out whether the engine stored them.
	Unknown
)

// String is the name of the state.
func (s State) String() string { return [...]string{"waiting", "refused", "unknown"}[s] }

// MarshalText is the name of the state, in JSON too.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// row is a row of yard_outbox. All of its tasks go to one partition of the engine, so they are accepted together.
type row struct {
	id    int64
	lane  int
	tasks []*yardv1.NewTask
	bytes int
}

// body is the row as it is stored.
func (r *row) body() ([]byte, error) { return (&yardv1.SubmitRequest{Tasks: r.tasks}).MarshalVT() }

// parse reads a row as it is stored.
func parse(id int64, body []byte) (row, error) {
	var req yardv1.SubmitRequest
	if err := req.UnmarshalVT(body); err != nil {
		return row{id: id}, err
	}
	return row{id: id, tasks: req.Tasks, bytes: len(body)}, nil
}

// pack makes rows of tasks. Rows of one lane are in the order of their tasks.
func pack(ctx context.Context, tasks []yard.Task, content coded.Codec, now time.Time) (rows []*row, names []string, err error) {
	call, plainLane := ids.NewRequestID(now).String(), rand.IntN(plainLanes)
	// A key has one open row, so that its tasks are in order even if their batches differ.
	type part struct{ orderKey, batch string }
	open := map[part]*row{}
	for i := range tasks {
		name := call
		if len(tasks) > 1 {
			name += "." + strconv.Itoa(i)
		}
		t, err := stored(ctx, &tasks[i], content, name, now)
		if err != nil {
			return nil, nil, at(i, err)
		}
		names = append(names, name)
		size, of := t.SizeVT()+taskOverhead, part{orderKey: t.OrderKey}
		if t.OrderKey == "" {
			of.batch = t.BatchId
		}
		r := open[of]
		if r == nil || r.tasks[0].BatchId != t.BatchId || t.UniqueKey != "" || len(r.tasks) == tasksMax || r.bytes+size > rowBytesMax {
			r = &row{lane: laneOf(t, plainLane)}
			rows = append(rows, r)
			if open[of] = r; t.UniqueKey != "" {
				delete(open, of) // its outcome is its own, and tasks of the same order key come after it
			}
		}
		r.tasks, r.bytes = append(r.tasks, t), r.bytes+size
	}
	return rows, names, nil
}

// at is the error of a task of a call.
func at(i int, err error) error {
	e := fault.From(err)
	path := e.Path
	if path == "" {
		path = "/payload"
	}
	return fault.At(e.Code, "/tasks/"+strconv.Itoa(i)+path, "%s", e.Message)
}

// stored is a task as its row has it.
func stored(ctx context.Context, task *yard.Task, content coded.Codec, name string, now time.Time) (*yardv1.NewTask, error) {
	t, err := task.Wire()
	if err != nil {
		return nil, err
	}
	if err := ids.CheckTypeName(t.Type); err != nil {
		return nil, fault.At(fault.InvalidArgument, "/type", "%v", err)
	}
	if err := ids.CheckName(t.Tasklist); err != nil {
		return nil, fault.At(fault.InvalidArgument, "/tasklist", "%v", err)
	}
	if data := t.Payload.GetData(); len(data) > 0 && t.Payload.Encoding == yardv1.Encoding_ENCODING_JSON && !codec.ValidJSON(data) {
		return nil, fault.At(fault.InvalidArgument, "/payload", "it is not one valid JSON value")
	}
	if err := coded.Encode(content, t); err != nil {
		return nil, err
	}
	if n := len(t.Payload.GetData()); n > payloadBytesMax {
		return nil, fault.At(fault.InvalidArgument, "/payload", "%d bytes are more than the %d allowed", n, payloadBytesMax)
	}
	if t.DelayMs > 0 && t.RunAtMs == 0 {
		t.DelayMs, t.RunAtMs = 0, now.UnixMilli()+t.DelayMs
	}
	if t.Headers = maps.Clone(t.Headers); t.Headers == nil {
		t.Headers = map[string]string{}
	}
	t.Headers[headerID] = name
	if t.Traceparent == "" {
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		t.Traceparent = carrier["traceparent"]
	}
	return t, nil
}

// laneOf is the lane of a task; plain is that of a task without a key.
func laneOf(t *yardv1.NewTask, plain int) int {
	key := t.OrderKey
	switch {
	case key != "":
	case t.BatchId != "":
		key = t.BatchId
	case t.UniqueKey != "":
		key = t.UniqueKey
	default:
		return plain
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return plainLanes + int(h.Sum32()%(lanes-plainLanes))
}

// fitting is how large a request becomes if the NATS server takes messages of so many bytes; 0 = that is not known. Headers have what is left.
func fitting(messageBytesMax int64) int {
	if most := int(messageBytesMax); most > 0 {
		return min(requestBytesMax, max(most-64<<10, most/2))
	}
	return requestBytesMax
}

// together are the first rows, at least one, that may be in one request: either all tasks have an order key or none has, unique keys are alike and differ from
// each other, and the batch is the same.
func together(rows []row, bytesMax int) []row {
	type uniqueIn struct{ orderKey, key string }
	seen := map[uniqueIn]bool{}
	tasks, bytes := 0, 0
	for i, r := range rows {
		tasks, bytes = tasks+len(r.tasks), bytes+r.bytes
		first, t := rows[0].tasks[0], r.tasks[0]
		unique := uniqueIn{t.OrderKey, t.UniqueKey}
		alike := (t.OrderKey == "") == (first.OrderKey == "") && (t.UniqueKey == "") == (first.UniqueKey == "") && t.BatchId == first.BatchId
		if i > 0 && (tasks > tasksMax || bytes > bytesMax || !alike || seen[unique]) {
			return rows[:i]
		}
		seen[unique] = t.UniqueKey != ""
	}
	return rows
}

// due makes tasks whose time is over due at once: the engine refuses times that are long past.
func due(tasks []*yardv1.NewTask, now time.Time) {
	for _, t := range tasks {
		if t.RunAtMs > 0 && t.RunAtMs <= now.UnixMilli() {
			t.RunAtMs = 0
		}
	}
}
