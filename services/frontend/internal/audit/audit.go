// Package audit keeps a list of what operators did: which requests changed settings, or tasks that others submitted.
//
// Owns: which verbs are recorded, what an entry says, and the queue of entries that are not stored yet. The list is a stream, which keeps the last
// entries of each domain.
//
// Never does: hold a request up, or refuse one. An entry is stored right after the answer.
//
// On failure: an entry that the stream does not take, or that finds the queue full, is lost, counted, and logged whole. A frontend that dies loses those
// of its last moments.
package audit

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
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
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

const (
	// queued is how many entries wait to be stored, at most.
	queued = 1000
	// requestMost is how many bytes of a request an entry has, byMost how many of a name.
	requestMost, byMost = 1000, 128
	// storeWithin is how long the stream has to take an entry.
	storeWithin = 5 * time.Second
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
}

type entry struct {
	domain string
	*yardv1.AuditEntry
}

// New makes a log. Run has to run while requests come.
func New(store Store, run *call.Runner, metrics *telemetry.Metrics, log *slog.Logger) *Log {
	return &Log{store: store, run: run, log: log, lost: metrics.Counter(signals.AuditLost), entries: make(chan entry, queued)}
}

// programs are the verbs that change something and that programs send all day.
var programs = []string{"batches.create", "batches.close"}

// Records reports whether requests of a verb are recorded: those that change something, and are no program's daily work. Those about single tasks are.
func Records(verb string) bool {
	return !strings.HasPrefix(verb, "tasks.") && !permissions.Reads(verb) && !slices.Contains(programs, verb)
}

// Answer returns what answers a request of a verb that is recorded: it records the request, and calls next. A preview, and the second and each further step
// of a request that is carried out step by step, are not recorded.
func (l *Log) Answer(c call.Call, verb, by string, request protoreflect.ProtoMessage, next call.Answer) call.Answer {
	if step, ok := request.(interface{ GetCursor() string }); ok && step.GetCursor() != "" {
		return next
	}
	if p, ok := request.(interface{ GetPreview() bool }); ok && p.GetPreview() {
		return next
	}
	e := entry{c.Domain, &yardv1.AuditEntry{
		AtMs: c.Now.UnixMilli(), Verb: verb, User: topology.UserOf(c.Reply), By: cut(by, byMost), Request: textOf(request),
	}}
	return func(resp codec.Message, err error) {
		if err != nil {
			if e.Code = string(fault.From(err).Code); e.Code != string(fault.Unknown) {
				next(resp, err)
				return
			}
		}
		select {
		case l.entries <- e:
		default:
			l.lose(e, "too many wait")
		}
		next(resp, err)
	}
}

// textOf is a request as JSON, without payloads and cut.
func textOf(m protoreflect.ProtoMessage) string {
	m = proto.Clone(m)
	withoutBytes(m.ProtoReflect())
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

// lose reports an entry that is not stored.
func (l *Log) lose(e entry, why string) {
	l.lost.Add(1)
	l.log.Error("a request of an operator is missing in the audit", "error", why, "domain", e.domain, "verb", e.Verb, "user", e.User, "by", e.By, "request", e.Request)
}

// Run stores entries until ctx ends, and then those that wait.
func (l *Log) Run(ctx context.Context) error {
	for {
		select {
		case e := <-l.entries:
			l.keep(e)
		case <-ctx.Done():
			for {
				select {
				case e := <-l.entries:
					l.keep(e)
				default:
					return nil
				}
			}
		}
	}
}

func (l *Log) keep(e entry) {
	data, err := json.Marshal(e.AuditEntry)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
		defer cancel()
		err = l.store.Append(ctx, e.domain, data)
	}
	if err != nil {
		l.lose(e, err.Error())
	}
}

// List answers with the last entries of a domain (audit.list).
func (l *Log) List(c call.Call, req *yardv1.ListAuditRequest, answer call.Answer) {
	limit, bad := validate.AuditLimit(req)
	l.run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) { return l.last(ctx, c.Domain, limit) })
}

// ListCluster answers with the last entries about domains (domains.audit).
func (l *Log) ListCluster(c call.Call, req *yardv1.ListAuditRequest, answer call.Answer) {
	limit, bad := validate.AuditLimit(req)
	l.run.Administer(c, bad, answer, func(ctx context.Context) (codec.Message, error) { return l.last(ctx, c.Domain, limit) })
}

func (l *Log) last(ctx context.Context, domain string, limit int) (*yardv1.ListAuditResponse, error) {
	all, err := l.store.Last(ctx, domain)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the list of what operators did does not answer: %v", err)
	}
	resp := &yardv1.ListAuditResponse{}
	for _, data := range slices.Backward(all) {
		var e yardv1.AuditEntry
		if json.Unmarshal(data, &e) == nil && len(resp.Entries) < limit {
			resp.Entries = append(resp.Entries, &e)
		}
	}
	return resp, nil
}
