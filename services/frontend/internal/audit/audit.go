// Package audit keeps a list of what operators did: which requests changed settings, or tasks that others submitted.
//
// Owns: which verbs are recorded, what an entry says, and the queue of entries that are not stored yet. The list is a stream, which keeps the last
// entries of each domain.
//
// Never does: hold a request up, or refuse one. An entry is stored right after the answer.
//
// On failure: an entry that the stream does not take, or that finds the queue full, is lost and counted, and the log has one each second. A frontend that dies
// loses those of its last moments.
package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

const (
	// queued is how many entries wait to be stored, at most.
	queued = 1000
	// requestMost is how many bytes of a request an entry has, byMost how many of a name.
	requestMost, byMost = 1000, 128
	// perDomain is how many of them are of one domain, at most.
	perDomain = 100
	// storeWithin is how long the stream has to take an entry, and at a stop all that wait.
	storeWithin = 5 * time.Second
	// stepsWithin is how long after a step of a request the next one is no entry of its own. stepsMost is how many such requests are remembered.
	stepsWithin, stepsMost = time.Minute, 1000
	// reportEvery is how often at most the log has an entry that was lost.
	reportEvery = time.Second
)

// Store keeps the entries.
type Store interface {
	// Append adds one of a domain.
	Append(ctx context.Context, domain string, data []byte) error
	// Last are the last ones of a domain, oldest first.
	Last(ctx context.Context, domain string) ([][]byte, error)
}

// Log records, and lists. It is safe for concurrent use.
type Log struct {
	store   Store
	run     *call.Runner
	log     *slog.Logger
	lost    *telemetry.Counter
	entries chan entry

	mu sync.Mutex
	// waiting counts the entries that wait, by domain. steps are when the last step of a request came. reported is when an entry was last reported as lost.
	waiting  map[string]int
	steps    map[string]time.Time
	reported time.Time
}

type entry struct {
	domain string
	*yardv1.AuditEntry
}

// New makes a log. Run has to run while requests come.
func New(store Store, run *call.Runner, metrics *telemetry.Metrics, log *slog.Logger) *Log {
	return &Log{store: store, run: run, log: log, lost: metrics.Counter(signals.AuditLost), entries: make(chan entry, queued), waiting: map[string]int{}, steps: map[string]time.Time{}}
}

// programs are the verbs that change something and that programs send all day.
var programs = []string{"batches.create", "batches.close"}

// Records reports whether requests of a verb are recorded: those that change something, and are no program's daily work. Those about single tasks are.
func Records(verb string) bool {
	return !strings.HasPrefix(verb, "tasks.") && !permissions.Reads(verb) && !slices.Contains(programs, verb)
}

// Answer returns what answers a request of a verb that is recorded: it records the request, and calls next. A preview is not recorded, nor is a step of a
// request that is carried out step by step if it follows another one.
func (l *Log) Answer(c call.Call, verb, by string, request protoreflect.ProtoMessage, next call.Answer) call.Answer {
	if p, ok := request.(interface{ GetPreview() bool }); ok && p.GetPreview() {
		return next
	}
	_, step := request.(interface{ GetCursor() string })
	e := entry{c.Domain, &yardv1.AuditEntry{
		AtMs: c.Now.UnixMilli(), Verb: verb, User: topology.UserOf(c.Reply), By: cut(by, byMost), Request: textOf(request),
	}}
	return func(resp codec.Message, err error) {
		if err == nil || maybeDone(fault.CodeOf(err)) {
			e.Code = string(fault.CodeOf(err))
			l.add(e, step)
		}
		next(resp, err)
	}
}

// maybeDone reports whether a request that is answered with a code may have been carried out, in whole or in part.
func maybeDone(code fault.Code) bool {
	return code == fault.Unknown || code == fault.Unavailable || code == fault.Internal
}

// add has an entry stored, unless it is a step that follows another one.
func (l *Log) add(e entry, step bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if step && l.follows(e) {
		return
	}
	if l.waiting[e.domain] >= perDomain {
		l.lose(e, "too many of the domain wait")
		return
	}
	select {
	case l.entries <- e:
		l.waiting[e.domain]++
	default:
		l.lose(e, "too many wait")
	}
}

// follows reports whether a step follows another one of the same request.
func (l *Log) follows(e entry) bool {
	key, at := strings.Join([]string{e.domain, e.Verb, e.User, e.By, e.Request, e.Code}, "\n"), time.UnixMilli(e.AtMs)
	last, known := l.steps[key]
	if !known && len(l.steps) >= stepsMost {
		maps.DeleteFunc(l.steps, func(_ string, last time.Time) bool { return at.Sub(last) > stepsWithin })
		if len(l.steps) >= stepsMost {
			return false
		}
	}
	l.steps[key] = at
	return known && at.Sub(last) <= stepsWithin
}

// textOf is a request as JSON, without payloads, and without what differs between the steps of one, and cut.
func textOf(m protoreflect.ProtoMessage) string {
	m = proto.Clone(m)
	withoutBytes(m.ProtoReflect())
	for _, name := range []protoreflect.Name{"cursor", "limit", "request_id"} {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(name); f != nil && m.ProtoReflect().Descriptor().Fields().ByName("cursor") != nil {
			m.ProtoReflect().Clear(f)
		}
	}
	data, err := codec.Marshal(codec.JSON, m.(codec.Message))
	if err != nil {
		return ""
	}
	return cut(string(data), requestMost)
}

// withoutBytes removes the fields of bytes of a message and of those in it.
func withoutBytes(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.BytesKind:
			m.Clear(f)
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				withoutBytes(v.List().Get(i).Message())
			}
		default:
			withoutBytes(v.Message())
		}
		return true
	})
}

// cut is the beginning of a text, in whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// lose counts an entry that is not stored, and reports it, not more often than each second. The caller has the lock.
func (l *Log) lose(e entry, why string) {
	l.lost.Add(1)
	now := time.Now()
	if now.Sub(l.reported) < reportEvery {
		return
	}
	l.reported = now
	l.log.Error("a request of an operator is missing in the audit", "error", why, "domain", e.domain, "verb", e.Verb, "user", e.User, "by", e.By, "request", e.Request)
}

// Run stores entries until ctx ends, and then those that wait.
func (l *Log) Run(ctx context.Context) error {
	for {
		select {
		case e := <-l.entries:
			l.keep(context.WithoutCancel(ctx), e)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
			defer cancel()
			for {
				select {
				case e := <-l.entries:
					l.keep(last, e)
				default:
					return nil
				}
			}
		}
	}
}

func (l *Log) keep(ctx context.Context, e entry) {
	data, err := json.Marshal(e.AuditEntry)
	if err == nil {
		once, cancel := context.WithTimeout(ctx, storeWithin)
		defer cancel()
		err = l.store.Append(once, e.domain, data)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[e.domain]--; l.waiting[e.domain] == 0 {
		delete(l.waiting, e.domain)
	}
	if err != nil {
		l.lose(e, err.Error())
	}
}

// List answers with the last entries of a domain (audit.list).
func (l *Log) List(c call.Call, req *yardv1.ListAuditRequest, answer call.Answer) {
	limit, bad := validate.AuditLimit(req)
	l.run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) { return l.last(ctx, c, limit) })
}

// ListCluster answers with the last entries about domains (domains.audit).
func (l *Log) ListCluster(c call.Call, req *yardv1.ListAuditRequest, answer call.Answer) {
	limit, bad := validate.AuditLimit(req)
	l.run.Administer(c, bad, answer, func(ctx context.Context) (codec.Message, error) { return l.last(ctx, c, limit) })
}

func (l *Log) last(ctx context.Context, c call.Call, limit int) (*yardv1.ListAuditResponse, error) {
	all, err := l.store.Last(ctx, c.Domain)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the list of what operators did does not answer: %v", err)
	}
	resp := &yardv1.ListAuditResponse{}
	for _, data := range slices.Backward(all) {
		var e yardv1.AuditEntry
		if json.Unmarshal(data, &e) == nil {
			resp.Entries = append(resp.Entries, &e)
		}
	}
	resp.Entries, _ = call.Fit(c, resp.Entries, limit)
	return resp, nil
}
