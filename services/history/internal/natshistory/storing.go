package natshistory

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

const (
	// storeCheck is how often messages are looked at that no stream has acknowledged. storeAgain is after what time one is sent again that was
	// not answered, storeFor for how long it is tried.
	storeCheck = 250 * time.Millisecond
	storeAgain = 2 * time.Second
	storeFor   = time.Minute
	// storingMax and storingBytesMax bound what is kept to be sent again; beyond them a message is sent once.
	storingMax      = 10_000
	storingBytesMax = 16 << 20
)

// storing sends messages until a stream has acknowledged them.
type storing struct {
	publish func(subject, reply string, data []byte)
	inbox   string

	mu    sync.Mutex
	n     uint64
	all   map[string]*unstored // by reply subject
	bytes int
	// check is set while a message is kept.
	check *time.Timer
	ended bool
}

// unstored is one message. Failed: no stream took it the last time.
type unstored struct {
	subject       string
	data          []byte
	begun, sentAt time.Time
	failed        bool
}

// store sends a message; false: too much is kept.
func (s *storing) store(subject string, data []byte) bool {
	s.mu.Lock()
	if len(s.all) >= storingMax || s.bytes+len(data) > storingBytesMax {
		s.mu.Unlock()
		return false
	}
	s.n++
	reply, now := s.inbox+".s"+strconv.FormatUint(s.n, 36), time.Now()
	s.all[reply] = &unstored{subject: subject, data: data, begun: now, sentAt: now}
	s.bytes += len(data)
	if s.check == nil {
		s.checkSoon()
	}
	s.mu.Unlock()
	s.publish(subject, reply, data)
	return true
}

// answered takes in what became of a message; false: m is about none.
func (s *storing) answered(m *nats.Msg) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[m.Subject]
	if one == nil {
		return false
	}
	if m.Header.Get("Status") == "503" || bytes.Contains(m.Data, []byte(`"error"`)) { // the stream has no leader, or none is there
		one.failed = true
	} else {
		s.forget(m.Subject, one)
	}
	return true
}

func (s *storing) forget(reply string, one *unstored) {
	delete(s.all, reply)
	s.bytes -= len(one.data)
}

// sendAgain sends what was not taken, or not answered.
func (s *storing) sendAgain() {
	for reply, one := range s.due(time.Now()) {
		s.publish(one.subject, reply, one.data)
	}
}

// checkSoon has sendAgain called if a message is kept. The caller has the lock.
func (s *storing) checkSoon() {
	if s.check = nil; len(s.all) > 0 && !s.ended {
		s.check = time.AfterFunc(pace.Of(storeCheck), s.sendAgain)
	}
}

// end ends the trials.
func (s *storing) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; s.check != nil {
		s.check.Stop()
	}
}

// due is what is to be sent again. It forgets what was tried for long enough.
func (s *storing) due(now time.Time) map[string]unstored {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := map[string]unstored{}
	for reply, one := range s.all {
		switch {
		case now.Sub(one.begun) > storeFor:
			s.forget(reply, one)
		case one.failed || now.Sub(one.sentAt) > storeAgain:
			one.failed, one.sentAt = false, now
			again[reply] = *one
		}
	}
	s.checkSoon()
	return again
}
