package natshistory

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Wire sends hints and answers by core NATS.
type Wire struct {
	nc      *nats.Conn
	replies *natsrpc.Replies
	log     *slog.Logger
	inbox   string
	storing storing

	mu sync.Mutex
	n  uint64
	// young and old are the answers of the last seconds, by number; an answer that
	// bounces does so within milliseconds.
	young, old map[string]func()
	turned     time.Time
}

// bounceWindow is for how long, at least, a bounced answer is recognised.
const bounceWindow = 5 * time.Second

// NewWire makes a wire; close ends it.
func NewWire(nc *nats.Conn, replies *natsrpc.Replies, log *slog.Logger) (w *Wire, closeWire func(), err error) {
	w = &Wire{nc: nc, replies: replies, log: log, inbox: nc.NewInbox(), young: map[string]func(){}, old: map[string]func(){}, turned: time.Now()}
	w.storing = storing{publish: w.send, inbox: w.inbox, all: map[string]*unstored{}}
	sub, err := nc.Subscribe(w.inbox+".*", w.bounced)
	if err != nil {
		return nil, nil, err
	}
	return w, func() {
		w.storing.end()
		_ = sub.Unsubscribe() // the connection is closing with it
	}, nil
}

// Publish implements partition.Wire.
func (w *Wire) Publish(subject string, data []byte) {
	if err := w.nc.Publish(subject, data); err != nil {
		w.log.Debug("hint or answer not sent", "subject", subject, "error", err)
	}
}

// Store implements partition.Wire.
func (w *Wire) Store(subject string, data []byte) {
	if !w.storing.store(subject, data) {
		w.Publish(subject, data)
	}
}

func (w *Wire) send(subject, reply string, data []byte) {
	if err := w.nc.PublishRequest(subject, reply, data); err != nil {
		w.log.Debug("hint or answer not sent", "subject", subject, "error", err)
	}
}

// Answer implements partition.Wire. An answer to what is no service's inbox is not delivered,
// like one whose asker is gone: the subject came out of the log. A message with a reply subject that reaches
// no one makes the server send a "no responders" status there.
func (w *Wire) Answer(subject string, data []byte, bounced func()) {
	if !w.replies.Service(subject) {
		if bounced != nil {
			go bounced()
		}
		return
	}
	if bounced == nil {
		w.Publish(subject, data)
		return
	}
	w.mu.Lock()
	w.n++
	reply := w.inbox + "." + strconv.FormatUint(w.n, 36)
	if now := time.Now(); now.Sub(w.turned) > bounceWindow {
		w.old, w.young, w.turned = w.young, map[string]func(){}, now
	}
	w.young[reply] = bounced
	w.mu.Unlock()
	w.send(subject, reply, data)
}

func (w *Wire) bounced(m *nats.Msg) {
	if w.storing.answered(m) || m.Header.Get("Status") != "503" {
		return // else somebody replied to an answer, which means nothing
	}
	w.mu.Lock()
	fn, ok := w.young[m.Subject]
	if !ok {
		fn = w.old[m.Subject]
	}
	delete(w.young, m.Subject)
	delete(w.old, m.Subject)
	w.mu.Unlock()
	if fn != nil {
		fn()
	}
}
