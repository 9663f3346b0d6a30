package intake

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// submission is a request on its way into the log, or one of its shares.
type submission struct {
	core.Share
	call     call.Call
	answer   call.Answer
	accepted validate.Accepted
	// seed and the time of the request make the ids: with the partition they make the same ids again. If the client has named the
	// request, its id makes them, and message and home.
	seed    uint64
	message messageID
	home    int
	// pinned: it goes to its home partition only.
	pinned  bool
	counted counted
	// refusal refuses it unless an earlier try was stored: its batch takes no tasks, or what it is for is drained. over is why it is over a cap, failure
	// what else has failed.
	refusal, over, failure error
	// admission has the parts of a request with unique keys counted once.
	admission sync.Once
	// starts is what it starts with its append; nil = nothing.
	starts *poll.Submit
	// partition is where it is now; ids tell it too. Tasks with unique keys may be in several: in[i] is that of task i then. Results are what
	// became of these, one by one.
	partition int
	in        []int
	results   []*yardv1.SubmitResult
	// conflicts are what tasks ask for where their key is taken, by task.
	conflicts map[int]yardv1.OnConflict
	size
	waitFor
	// ended, if set, hears how it ended, which is a share. Else it is answered.
	ended func(core.End)
	// began is when what stores it began.
	began time.Time

	span trace.Span // of the request; never nil
	// spans are those of the tasks with a trace of their own, by task; nil at the
	// others, and as a whole where there is none.
	spans []trace.Span
}

// waitFor is what a submission waits for before it is answered.
type waitFor struct {
	wait time.Duration // for the result; negative = not asked for
	// headers are those of the task whose result is waited for.
	headers map[string]string
}

// size is what a submission takes.
type size struct {
	// weight is what it takes up of a group commit, in bytes; bytes is what it takes in the log.
	weight, bytes int
	// charge is what its domain's quota counts.
	charge *quotas.Charge
}

// messageID is what the log recognises a repeated message by.
type messageID [16]byte

// String is the id as it travels.
func (m messageID) String() string { return hex.EncodeToString(m[:]) }

func newMessageID() messageID {
	var id messageID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
}

// begin starts its share.
func (s *submission) begin(g core.Guard) {
	t := s.Terms
	t.Guard, t.Batch, t.Refused = g, s.batch() != "", s.refusal != nil
	t.Deadline = s.call.Now.Add(s.call.Deadline.Sub(s.call.Received))
	s.Start(t)
	s.began = time.Now()
}

// broken reports that s is not sent, for a reason that only the shell knows.
func (s *submission) broken(why error) {
	s.failure = why
	s.Appended(core.Broken, s.now())
}

func notEncoded(err error) error { return fault.New(fault.Internal, "encode a batch: %v", err) }

// closeRead reports why the batch of s takes no tasks; nil = it is open, or that is not known.
func (s *submission) closeRead(refused error) {
	if refused != nil {
		s.refusal = refused
	}
	s.CloseRead(refused != nil)
}

func (s *submission) now() time.Time { return s.call.ServerNow() }

// age is how long ago the request was made, by the server's clock now.
func (s *submission) age() time.Duration { return s.now().Sub(s.Made) }

// nowMs is the server's clock for a client whose own is off, Unix ms, or 0.
func (s *submission) nowMs() int64 {
	if s.HasID && s.Tries <= 1 && s.call.Now.Sub(s.Made).Abs() > tries.SkewReported {
		return s.now().UnixMilli()
	}
	return 0
}

func (s *submission) tasks() int { return len(s.accepted.Records) }

func (s *submission) unique() bool  { return s.accepted.Records[0].Unique != nil }
func (s *submission) ordered() bool { return s.accepted.Records[0].Order != nil }

// batch is the batch of the tasks of s; "" = none.
func (s *submission) batch() string { return s.accepted.Records[0].BatchId }

// batchRef is a batch of a domain.
type batchRef struct{ domain, id string }

func (s *submission) batchRef() batchRef { return batchRef{s.call.Domain, s.batch()} }

// joins notes the batch that the tasks of s are of.
func (s *submission) joins(made int64) {
	for _, r := range s.accepted.Records {
		r.BatchMadeMs = made
	}
}

// closeKey names the batch of s in its partition.
func (s *submission) closeKey() batchclose.Key {
	return batchclose.Key{Partition: s.partition, Domain: s.call.Domain, ID: s.batch(), Made: s.accepted.Records[0].BatchMadeMs}
}

// member is m, a message of the tasks of s, as the log may take it.
func (s *submission) member(m natslog.Msg) natslog.Msg {
	if s.batch() == "" {
		return m
	}
	return s.closeKey().Member(m)
}

// date tells the log for how long after the time of the request it may take s.
func (s *submission) date(within time.Duration) {
	for _, r := range s.accepted.Records {
		r.WithinMs = within.Milliseconds()
	}
}

// place has every task get its id in partition p.
func (s *submission) place(p int) {
	s.partition = p
	slab := make([]byte, 0, len(ids.TaskID{})*s.tasks())
	for i, r := range s.accepted.Records {
		id := s.id(i)
		slab = append(slab, id[:]...)
		r.Id = slab[len(slab)-len(id):]
	}
}

// id is that of task i.
func (s *submission) id(i int) ids.TaskID {
	p := s.partition
	if s.in != nil {
		p = s.in[i]
	}
	return ids.NewTaskID(s.Made, p, mix(s.seed, i))
}

// mix is the i-th number of the SplitMix64 sequence that starts at seed: one
// number names all tasks of a request.
func mix(seed uint64, i int) uint64 {
	z := seed + uint64(i)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// measure works out the weight, and refuses what no log message can hold.
func (s *submission) measure(messageBytesMax int, version uint32) error {
	s.bytes = merged([]*submission{s}, version).SizeVT()
	if s.bytes > messageBytesMax {
		return fault.At(fault.InvalidArgument, "/tasks", "take %d bytes together, the log takes %d in one message: send fewer at once", s.bytes, messageBytesMax)
	}
	// A batch is bounded in bytes and in tasks; the heavier one counts.
	s.weight = max(s.bytes, s.tasks()*(groupcommit.MessageBytesMax/validate.BatchMax))
	return nil
}

// Load implements groupcommit.Item.
func (s *submission) Load() (domain string, weight int) { return s.call.Domain, s.weight }

func merged(batch []*submission, version uint32) *logv1.Batch {
	if len(batch) == 1 {
		return &logv1.Batch{Tasks: batch[0].accepted.Records, LogVersion: version}
	}
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	tasks := make([]*logv1.Record, 0, n)
	for _, s := range batch {
		tasks = append(tasks, s.accepted.Records...)
	}
	return &logv1.Batch{Tasks: tasks, LogVersion: version}
}

// destination is where s belongs in the log.
func (s *submission) destination() filing.Destination {
	d := filing.Destination{Lane: s.accepted.Lane, Domain: s.call.Domain, Tasklist: s.accepted.Tasklist}
	if batch := s.batch(); batch != "" {
		d.Tasklist = topology.BatchTasklist(d.Domain, batch)
	}
	return d
}

// filing is what planning a flush needs to know of s.
func (s *submission) filing() filing.Request {
	return filing.Request{Destination: s.destination(), Tasks: s.tasks(), Bytes: max(1, s.weight), Alone: s.batch() != "", Started: s.starts.Starts()}
}

// subject is where a message for a destination is filed.
func subject(p int, d filing.Destination) string {
	switch {
	case d.Domain == "":
		return topology.SubmitShared(p, d.Lane)
	case d.Tasklist == "":
		return topology.SubmitOf(p, d.Lane, d.Domain)
	}
	return topology.Submit(p, d.Lane, d.Domain, d.Tasklist)
}

// outcomes tells of every task that it is stored, or what became of those of several shares.
func (s *submission) outcomes() []*yardv1.SubmitResult {
	if s.results != nil {
		return s.results
	}
	slab := make([]yardv1.SubmitResult, s.tasks()) // one allocation for all
	out := make([]*yardv1.SubmitResult, len(slab))
	for i := range slab {
		slab[i].TaskId, slab[i].Outcome = s.id(i).String(), yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED
		out[i] = &slab[i]
	}
	return out
}

// decided reports whether some tasks of s have a result.
func (s *submission) decided() bool {
	return slices.ContainsFunc(s.results, func(r *yardv1.SubmitResult) bool { return r != nil })
}

// otherClock adds the server's clock to a refusal, which says too that no try was stored, nor will be.
func (s *submission) otherClock(e *fault.Error) *fault.Error {
	e.Detail = map[string]string{fault.DetailNowMs: strconv.FormatInt(s.now().UnixMilli(), 10)}
	return e
}
