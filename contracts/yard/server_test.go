package yard_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// server is as much of a NATS server as clients of one process see of it, in memory: it runs inside a bubble, whose time
// passes at once. It knows subscriptions, wildcards, headers and "no responders"; it can go away, which ends all
// connections, and come back.
type server struct {
	mu    sync.Mutex
	away  bool
	peers map[*peer]bool
	dials int
	// maxPayload is what it tells clients, bytes.
	maxPayload int
}

// peer is the server's side of a connection.
type peer struct {
	server *server
	conn   net.Conn
	// subs are the subjects by the client's numbers, guarded by the server.
	subs map[string]string

	mu    sync.Mutex
	out   []byte
	wake  *sync.Cond
	ended bool
}

func newServer() *server {
	return &server{peers: map[*peer]bool{}, maxPayload: 1 << 20}
}

// InProcessConn implements what nats.InProcessServer takes.
func (s *server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.away {
		return nil, errors.New("the server is away")
	}
	theirs, ours := net.Pipe()
	p := &peer{server: s, conn: ours, subs: map[string]string{}}
	p.wake = sync.NewCond(&p.mu)
	s.peers[p] = true
	p.send(fmt.Sprintf(`INFO {"server_id":"bubble","version":"2.12.0","proto":1,"headers":true,"max_payload":%d}`+"\r\n", s.maxPayload))
	go p.write()
	go p.read()
	return theirs, nil
}

// stop takes the server away.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	for p := range s.peers {
		p.end()
	}
	clear(s.peers)
}

// start brings it back.
func (s *server) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// tried is how many connections were asked for.
func (s *server) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

// subscriptions are the subjects that somebody waits for and that begin with prefix.
func (s *server) subscriptions(prefix string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		for _, subject := range p.subs {
			if strings.HasPrefix(subject, prefix) {
				all = append(all, subject)
			}
		}
	}
	return all
}

// connect connects somebody else than the client under test.
func (s *server) connect(t *testing.T) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1))
	checktest.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func (p *peer) send(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range parts {
		p.out = append(p.out, part...)
	}
	p.wake.Signal()
}

func (p *peer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake.Signal()
	_ = p.conn.Close() // a pipe
}

func (p *peer) write() {
	for {
		p.mu.Lock()
		for len(p.out) == 0 && !p.ended {
			p.wake.Wait()
		}
		out, ended := p.out, p.ended
		p.out = nil
		p.mu.Unlock()
		if ended {
			return
		}
		if _, err := p.conn.Write(out); err != nil {
			return // the client has gone, which the reader sees too
		}
	}
}

// read serves the client until it goes.
func (p *peer) read() {
	defer func() {
		p.server.mu.Lock()
		delete(p.server.peers, p)
		p.server.mu.Unlock()
		p.end()
	}()
	in := bufio.NewReader(p.conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch words[0] {
		case "PING":
			p.send("PONG\r\n")
		case "SUB":
			p.server.subscribe(p, words[len(words)-1], words[1])
		case "UNSUB":
			p.server.subscribe(p, words[1], "")
		case "PUB", "HPUB":
			if err := p.publish(in, words); err != nil {
				return
			}
		}
	}
}

func (s *server) subscribe(p *peer, sid, subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if subject == "" {
		delete(p.subs, sid)
		return
	}
	p.subs[sid] = subject
}

// publish reads the body of a message and routes it. The words are PUB subject [reply] bytes, or HPUB subject
// [reply] bytes-of-headers bytes.
func (p *peer) publish(in io.Reader, words []string) error {
	sizes, verb := 1, "MSG"
	if words[0] == "HPUB" {
		sizes, verb = 2, "HMSG"
	}
	subject, numbers, reply := words[1], words[len(words)-sizes:], ""
	if len(words) == 3+sizes {
		reply = words[2]
	}
	n, err := strconv.Atoi(numbers[sizes-1])
	if err != nil {
		return err
	}
	body := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := 0
	for other := range s.peers {
		heard += other.hear(verb, subject, reply, numbers, string(body))
	}
	if heard == 0 && reply != "" {
		const status = "NATS/1.0 503\r\n\r\n"
		size := strconv.Itoa(len(status))
		p.hear("HMSG", reply, "", []string{size, size}, status+"\r\n")
	}
	return nil
}

// hear sends a message to the subscriptions of p that match, and returns how many do.
func (p *peer) hear(verb, subject, reply string, sizes []string, body string) (n int) {
	for sid, pattern := range p.subs {
		if !matches(pattern, subject) {
			continue
		}
		words := []string{verb, subject, sid}
		if reply != "" {
			words = append(words, reply)
		}
		p.send(strings.Join(append(words, sizes...), " "), "\r\n", body)
		n++
	}
	return n
}

func matches(pattern, subject string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(got) > i
		case i >= len(got), token != "*" && token != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}
