package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// readyWithin bounds every start: a bound for a broken run on a loaded machine.
	readyWithin = 60 * time.Second
	// replicasWithin bounds how long the copies of all streams take to be whole again, under load.
	replicasWithin = 3 * time.Minute
	// askTimeout bounds one look at a health page.
	askTimeout = 2 * time.Second
)

// Cluster is a running system. Its methods are for the test's goroutine.
type Cluster struct {
	Redis *testkit.Redis
	// RedisNodes are those of a Redis Cluster.
	RedisNodes []*testkit.Redis

	tb        testing.TB
	bin       Binaries
	shape     shape
	processes map[Service][]*node
	// seal is nil where everybody may do everything.
	seal *seal
	// redisSecured are the flags by which matching reaches a Redis that is secured.
	redisSecured []string
	// dir holds the data; logs outlives a failed test.
	dir, logs string
}

// shape is what a cluster consists of.
type shape struct {
	instances, natsNodes int
	flags                []string // further ones of every service
	flagsOf              map[Service][]string
	redis                []string // further ones of redis-server
	redisNodes           int
	redisSecured, sealed bool
	env                  func(Service, int) []string
	natsData             func(i int, folder string) string
}

// Option changes what a cluster consists of.
type Option func(*shape)

// WithNATSNodes runs a NATS cluster of three nodes or more instead of one server,
// with three replicas of all that is stored in files.
func WithNATSNodes(n int) Option {
	return func(s *shape) {
		s.natsNodes = n
		s.flags = append(s.flags, "--provision.replicas", "3")
	}
}

// WithFlags gives every service further flags.
func WithFlags(flags ...string) Option {
	return func(s *shape) { s.flags = append(s.flags, flags...) }
}

// WithFlagsOf gives one service further flags.
func WithFlagsOf(service Service, flags ...string) Option {
	return func(s *shape) {
		if s.flagsOf == nil {
			s.flagsOf = map[Service][]string{}
		}
		s.flagsOf[service] = append(s.flagsOf[service], flags...)
	}
}

// WithEnv gives each process further variables, as NAME=value.
func WithEnv(env func(s Service, i int) []string) Option {
	return func(s *shape) { s.env = env }
}

// WithNATSData chooses the folder of each server of a NATS cluster, by its number and the folder that it has otherwise.
func WithNATSData(choose func(i int, folder string) string) Option {
	return func(s *shape) { s.natsData = choose }
}

// WithRedis gives redis-server further arguments, such as "--save", "60 1".
func WithRedis(args ...string) Option {
	return func(s *shape) { s.redis = append(s.redis, args...) }
}

// WithRedisNodes runs a Redis Cluster of so many nodes instead of one server: RedisNodes has
// them, and Redis is the first.
func WithRedisNodes(n int) Option {
	return func(s *shape) { s.redisNodes = n }
}

// node is one process of a service, or of NATS.
type node struct {
	*process
	// addr is that of its health pages; of NATS, that for clients.
	addr string
}

// New prepares a cluster with the given number of processes of each service and
// starts nothing but Redis. It ends with the test, which a quick run leaves out.
func New(tb testing.TB, bin Binaries, instances int, opts ...Option) *Cluster {
	tb.Helper()
	testkit.Slow(tb, "starts a cluster of processes")
	c := &Cluster{tb: tb, bin: bin, shape: shape{instances: instances, natsNodes: 1, sealed: os.Getenv(SealedEnv) != ""}, processes: map[Service][]*node{}, dir: tb.TempDir()}
	for _, o := range opts {
		o(&c.shape)
	}
	var err error
	c.logs, err = os.MkdirTemp("", "yard-logs-")
	c.must(err)
	c.startRedis()
	tb.Cleanup(c.end)
	c.prepareNATS()
	for _, s := range Services() {
		for i := range instances {
			c.processes[s] = append(c.processes[s], c.newNode(bin, s, i))
		}
	}
	return c
}

func (c *Cluster) startRedis() {
	c.tb.Helper()
	if c.shape.redisNodes == 0 {
		c.Redis = testkit.RunRedis(c.tb, c.shape.redis...)
		return
	}
	c.RedisNodes = testkit.RunRedisCluster(c.tb, c.shape.redisNodes)
	c.Redis = c.RedisNodes[0]
}

// Start prepares a cluster, starts everything and returns when all of it is ready.
func Start(tb testing.TB, bin Binaries, instances int, opts ...Option) *Cluster {
	tb.Helper()
	c := New(tb, bin, instances, opts...)
	c.StartNATS()
	c.StartServices()
	c.AwaitReady()
	return c
}

func (c *Cluster) newProcess(name string, argv ...string) *process {
	return &process{name: name, log: filepath.Join(c.logs, name+".log"), argv: argv}
}

func (c *Cluster) newNode(bin Binaries, s Service, i int) *node {
	name := fmt.Sprintf("%s-%d", s, i)
	at := testkit.FreeAddr(c.tb)
	args := []string{bin.path(string(s)), "--nats.url", c.URL(), "--node", name, "--http", at}
	switch {
	case s != Matching:
	case len(c.RedisNodes) > 0:
		args = append(args, "--redis.cluster")
		for _, r := range c.RedisNodes {
			args = append(args, "--redis.addrs", r.Addr)
		}
	default:
		args = append(args, c.redisFlags()...)
	}
	args = append(append(append(args, c.serviceFlags(s)...), c.shape.flags...), c.shape.flagsOf[s]...)
	n := &node{process: c.newProcess(name, args...), addr: at}
	if c.shape.env != nil {
		n.env = c.shape.env(s, i)
	}
	return n
}

// Instances is how many processes of a service there are.
func (c *Cluster) Instances(s Service) int { return len(c.processes[s]) }

// Client connects a client of a domain, closed with the test. Domains are made by Admin.
func (c *Cluster) Client(domain string) *yard.Client {
	c.tb.Helper()
	client, err := yard.Connect(c.URL(), domain, yard.WithNATSOptions(c.asAdmin(domain)...))
	if err != nil {
		c.tb.Fatal(err)
	}
	c.tb.Cleanup(client.Close)
	return client
}

// StartServices starts all processes of the services that do not run.
func (c *Cluster) StartServices() {
	c.tb.Helper()
	for _, s := range Services() {
		for i := range c.processes[s] {
			c.Restart(s, i)
		}
	}
}

// Restart starts a process again that was ended, NATS on the data it had. It does not wait for it.
func (c *Cluster) Restart(s Service, i int) {
	c.tb.Helper()
	if s != NATS {
		c.provision()
	}
	c.must(c.processes[s][i].start())
}

// Kill ends a process with SIGKILL.
func (c *Cluster) Kill(s Service, i int) {
	c.tb.Helper()
	_, err := c.processes[s][i].signal(syscall.SIGKILL, false)
	c.must(err)
}

// Term ends a process with SIGTERM and returns how long its drain took. An exit
// code other than 0 fails the test.
func (c *Cluster) Term(s Service, i int) time.Duration {
	c.tb.Helper()
	took, err := c.processes[s][i].signal(syscall.SIGTERM, false)
	c.must(err)
	return took
}

// Pause stops a process with SIGSTOP: it does nothing and notices nothing until
// Resume.
func (c *Cluster) Pause(s Service, i int) {
	c.tb.Helper()
	c.must(c.processes[s][i].send(syscall.SIGSTOP))
}

// Resume lets a paused process go on.
func (c *Cluster) Resume(s Service, i int) {
	c.tb.Helper()
	c.must(c.processes[s][i].send(syscall.SIGCONT))
}

// KillEverything is a power cut: no process of the cluster, NATS and Redis
// included, has a chance to do anything more.
func (c *Cluster) KillEverything() {
	c.tb.Helper()
	all := c.all()
	failures := make(chan error, len(all))
	for _, p := range all {
		go func() {
			_, err := p.signal(syscall.SIGKILL, false)
			failures <- err
		}()
	}
	c.Redis.Stop()
	for range all {
		c.must(<-failures)
	}
}

// AwaitReady waits until every process says that it is ready.
func (c *Cluster) AwaitReady() {
	c.tb.Helper()
	for _, s := range Services() {
		for i := range c.processes[s] {
			c.AwaitProcess(s, i)
		}
	}
}

// AwaitProcess waits until one process says that it is ready.
func (c *Cluster) AwaitProcess(s Service, i int) {
	c.tb.Helper()
	n := c.processes[s][i]
	testkit.Eventually(c.tb, readyWithin, func() error {
		if err := n.failed(); err != nil {
			c.tb.Fatal(err)
		}
		return c.Ready(s, i)
	})
}

// Alive tells whether a process answers, ready or not.
func (c *Cluster) Alive(s Service, i int) error {
	_, err := c.page(s, i, "/livez")
	return err
}

// Ready tells whether a process answers that it is ready; of NATS, whether its JetStream answers.
func (c *Cluster) Ready(s Service, i int) error {
	if s == NATS {
		return jetStreamAnswers("nats://"+c.processes[s][i].addr, append(c.asInside(), nats.Timeout(askTimeout)))
	}
	_, err := c.page(s, i, "/readyz")
	return err
}

// Readiness is the list of checks of a process that is ready.
func (c *Cluster) Readiness(s Service, i int) (string, error) { return c.page(s, i, "/readyz") }

// Metrics is the page of numbers of a process.
func (c *Cluster) Metrics(s Service, i int) (string, error) { return c.page(s, i, "/metrics") }

func (c *Cluster) page(s Service, i int, path string) (string, error) {
	n := c.processes[s][i]
	client := http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + n.addr + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s answers %s", n.name, path, resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// Check fails the test where a process has ended that no one ended.
func (c *Cluster) Check() {
	c.tb.Helper()
	var failures []error
	for _, p := range c.all() {
		failures = append(failures, p.failed())
	}
	if err := errors.Join(failures...); err != nil {
		c.tb.Fatal(err)
	}
}

// all are the processes, NATS first.
func (c *Cluster) all() []*process {
	var all []*process
	for _, n := range c.processes[NATS] {
		all = append(all, n.process)
	}
	if c.seal != nil {
		all = append(all, c.seal.provisioner)
	}
	for _, s := range Services() {
		for _, n := range c.processes[s] {
			all = append(all, n.process)
		}
	}
	return all
}

// end kills what still runs, NATS last; the last words of a failed test are the logs.
func (c *Cluster) end() {
	all := c.all()
	slices.Reverse(all)
	for _, p := range all {
		_, _ = p.signal(syscall.SIGKILL, true)
	}
	c.checkRefusals()
	if c.tb.Failed() {
		c.printLogs()
		return
	}
	if err := os.RemoveAll(c.logs); err != nil {
		c.tb.Error(err)
	}
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}
