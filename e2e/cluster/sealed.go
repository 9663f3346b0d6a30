package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// SealedEnv has every cluster sealed that a test package starts.
const SealedEnv = "YARD_SEALED"

// WithSealed runs NATS with TLS and with exactly the users that `yard auth render` writes, so that
// each process may do what its role may. A refusal in a server's log fails the test.
func WithSealed() Option {
	return func(s *shape) { s.sealed = true }
}

// seal is what a sealed cluster has beside its processes. There is one user more than rendered: that of
// tests which look inside.
type seal struct {
	dir     string
	tls     testkit.Certificates
	domains []string
	// inside may do everything; its public key is added to the configuration.
	inside       permissions.User
	insidePublic string
	provisioner  *process
}

// prepareSeal makes the users, before any process is prepared.
func (c *Cluster) prepareSeal() {
	c.tb.Helper()
	if !c.shape.sealed {
		return
	}
	c.seal = &seal{dir: filepath.Join(c.dir, "auth"), inside: permissions.User{Role: permissions.Operator, Name: "inside"}}
	users, err := auth.Render(c.seal.insideDir(), auth.Plan{Partitioning: topology.DefaultPartitioning(), Users: []permissions.User{c.seal.inside}})
	c.must(err)
	c.seal.insidePublic = users[len(users)-1].Public
	c.seal.tls = testkit.NewCertificates(c.tb, c.dir)
	c.must(c.seal.render())
	provisioner := permissions.User{Role: permissions.Provisioner}
	argv := []string{c.bin.path("yard"), "provision", "--keep", "--url", c.URL(), "--replicas", fmt.Sprint(min(c.shape.natsNodes, 3))}
	c.seal.provisioner = c.newProcess("provisioner", append(argv, c.yardLogin(provisioner)...)...)
}

func (s *seal) insideDir() string { return filepath.Join(s.dir, "inside") }

// config is the file that nats-servers read.
func (s *seal) config() string { return filepath.Join(s.dir, "nats.conf") }

// render writes the users of all domains there are by now.
func (s *seal) render() error {
	plan := auth.Plan{Partitioning: topology.DefaultPartitioning(), Users: []permissions.User{sealed.Operator()}, TLS: auth.TLS{Cert: s.tls.Cert, Key: s.tls.Key}}
	for _, d := range s.domains {
		plan.Users = append(plan.Users, sealed.Admin(d))
	}
	if _, err := auth.Render(s.dir, plan); err != nil {
		return err
	}
	rendered, err := os.ReadFile(filepath.Join(s.dir, auth.ConfigFile))
	if err != nil {
		return err
	}
	const users = "    users: [\n"
	before, after, found := strings.Cut(string(rendered), users)
	if !found {
		return fmt.Errorf("%s has no list of users", auth.ConfigFile)
	}
	text := fmt.Sprintf("%s%s      { nkey: %s }\n%s", before, users, s.insidePublic, after)
	return os.WriteFile(s.config(), []byte(text), 0o600)
}

// serviceFlags are those of a service on a sealed cluster.
func (c *Cluster) serviceFlags(s Service) []string {
	if c.seal == nil {
		return nil
	}
	u := permissions.User{Role: permissions.Role(s)}
	return []string{
		"--inbox-prefixes", topology.TenantInboxes, "--provision.enabled=false",
		"--nats.nkey-seed", auth.SeedFile(c.seal.dir, u), "--nats.inbox-prefix", u.Inbox(), "--nats.tls.ca", c.seal.tls.CA,
	}
}

// yardLogin are the flags by which the yard command is a user.
func (c *Cluster) yardLogin(u permissions.User) []string {
	if c.seal == nil {
		return nil
	}
	return []string{"--nkey", auth.SeedFile(c.seal.dir, u), "--inbox-prefix", u.Inbox(), "--tls-ca", c.seal.tls.CA}
}

// login is how a client is a user with inboxes of its own; no one where the cluster is not sealed.
func (c *Cluster) login(u permissions.User) []nats.Option {
	c.tb.Helper()
	if c.seal == nil {
		return c.loginWith("", "")
	}
	return c.loginWith(auth.SeedFile(c.seal.dir, u), u.Inbox())
}

func (c *Cluster) loginWith(seed, inbox string) []nats.Option {
	c.tb.Helper()
	cfg := natsrpc.ConnConfig{NKeySeed: seed, InboxPrefix: inbox}
	if c.seal != nil {
		cfg.TLS.CA = c.seal.tls.CA
	}
	opts, err := cfg.Options()
	c.must(err)
	return append(opts, nats.Name(c.tb.Name()), nats.Timeout(readyWithin))
}

// asAdmin is how a client is the admin of a domain. The servers learn of a new one.
func (c *Cluster) asAdmin(domain string) []nats.Option {
	c.tb.Helper()
	u := sealed.Admin(domain)
	if c.seal != nil && !slices.Contains(c.seal.domains, domain) {
		c.seal.domains = append(c.seal.domains, domain)
		c.must(c.seal.render())
		for _, n := range c.processes[NATS] {
			_ = n.send(syscall.SIGHUP) // one that does not run reads the file when it starts
		}
		c.awaitUser(u)
	}
	return c.login(u)
}

// awaitUser waits until every NATS server that runs takes a user.
func (c *Cluster) awaitUser(u permissions.User) {
	c.tb.Helper()
	for _, n := range c.processes[NATS] {
		testkit.Eventually(c.tb, readyWithin, func() error {
			if !n.runs() {
				return nil
			}
			nc, err := nats.Connect("nats://"+n.addr, c.login(u)...)
			if err == nil {
				nc.Close()
			}
			return err
		})
	}
}

// asInside is how a client may do everything; services answer it as one of them.
func (c *Cluster) asInside() []nats.Option {
	c.tb.Helper()
	if c.seal == nil {
		return c.loginWith("", "")
	}
	return c.loginWith(auth.SeedFile(c.seal.insideDir(), c.seal.inside), topology.ServiceInbox(sealed.UserName))
}

// Inside connects to NATS as who may do everything, for a look behind the API; it is closed with the test.
func (c *Cluster) Inside(more ...nats.Option) *nats.Conn {
	c.tb.Helper()
	return c.connect(append(c.asInside(), more...))
}

// Conn connects to NATS as the admin of a domain, as a client without the SDK does; it is closed with the test.
func (c *Cluster) Conn(domain string, more ...nats.Option) *nats.Conn {
	c.tb.Helper()
	return c.connect(append(c.asAdmin(domain), more...))
}

// Admin is a client that makes domains. It lasts as long as the test.
func (c *Cluster) Admin() *yard.Admin {
	c.tb.Helper()
	admin, err := yard.NewAdmin(c.connect(c.login(sealed.Operator())))
	c.must(err)
	return admin
}

func (c *Cluster) connect(opts []nats.Option) *nats.Conn {
	c.tb.Helper()
	nc, err := nats.Connect(c.URL(), opts...)
	c.must(err)
	c.tb.Cleanup(nc.Close)
	return nc
}

// provision has the provisioner run.
func (c *Cluster) provision() {
	c.tb.Helper()
	if c.seal != nil && !c.seal.provisioner.runs() {
		c.must(c.seal.provisioner.start())
	}
}

// checkRefusals fails the test where a NATS server refused what somebody wanted.
func (c *Cluster) checkRefusals() {
	if c.seal == nil {
		return
	}
	for _, n := range c.processes[NATS] {
		text, err := os.ReadFile(n.log)
		if err != nil && !os.IsNotExist(err) {
			c.tb.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, sealed.Violation) {
				c.tb.Errorf("%s refused: %s", n.name, strings.TrimSpace(line))
			}
		}
	}
}
