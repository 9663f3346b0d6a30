package permissions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Role is a kind of user.
type Role string

// The roles. Services, the provisioner and the inspector are one user each; operators and observers have names;
// submitters, workers, viewers and admins are of one domain and have names.
const (
	Frontend Role = "frontend"
	History  Role = "history"
	Matching Role = "matching"
	Timer    Role = "timer"
	// Provisioner creates and corrects streams and buckets, restores those of a backup where they do not exist, and does nothing
	// else.
	Provisioner Role = "provisioner"
	// Inspector reads all that is stored, of all domains, for `yard doctor` and backups; and writes nothing but that a unique key is free,
	// and deletes consumers, which its repairs do.
	Inspector Role = "inspector"
	// Operator manages domains, upgrades and quarantine. Of the tasks of domains
	// it sees what is in quarantine only.
	Operator Role = "operator"
	// Observer sees domains, queues and the health of processes, and changes nothing.
	Observer Role = "observer"
	// Submitter hands in tasks of a domain, looks at them, updates and cancels them, and hears their events.
	Submitter Role = "submitter"
	// Worker polls for the tasks of a domain and decides them.
	Worker Role = "worker"
	// Viewer sees all that a domain has, and changes nothing.
	Viewer Role = "viewer"
	// Admin does all that a domain may.
	Admin Role = "admin"
)

// Services are the roles without a name or domain, in the order in which they are listed.
func Services() []Role { return []Role{Provisioner, Frontend, History, Matching, Timer, Inspector} }

// Roles are all of them.
func Roles() []Role { return append(Services(), Operator, Observer, Submitter, Worker, Viewer, Admin) }

// Tenant tells whether users of a role are of a domain.
func (r Role) Tenant() bool { return r == Submitter || r == Worker || r == Viewer || r == Admin }

// User is somebody who connects.
type User struct {
	Role Role
	// Domain is a tenant's, and empty for others.
	Domain string
	// Name tells users of one role apart; services have none.
	Name string
	// Tasklists are those that a worker may poll, with colons between them. Default: all of its domain. Outcomes are
	// fenced by the tokens of attempts, which only a poll gives.
	Tasklists string
}

// TasklistNames are the tasklists that a worker is restricted to; none = it is not.
func (u User) TasklistNames() []string {
	if u.Tasklists == "" {
		return nil
	}
	return strings.Split(u.Tasklists, ":")
}

// ParseUser reads `role`, `role:name` or `role:domain:name`, as its role takes them, and
// `worker:domain:name:tasklist…`. Each part is [A-Za-z0-9_-]{1,64}.
func ParseUser(text string) (User, error) {
	part := strings.Split(text, ":")
	u := User{Role: Role(part[0])}
	want := "role"
	switch {
	case slices.Contains(Services(), u.Role):
		if len(part) == 1 {
			return u, nil
		}
	case u.Role == Operator, u.Role == Observer:
		if want = string(u.Role) + ":name"; len(part) == 2 {
			u.Name = part[1]
			return u, u.check(text)
		}
	case u.Role.Tenant():
		want = string(u.Role) + ":domain:name"
		if len(part) == 3 || len(part) > 3 && u.Role == Worker {
			u.Domain, u.Name, u.Tasklists = part[1], part[2], strings.Join(part[3:], ":")
			if len(part) > 3 && u.Tasklists == "" {
				return u, fmt.Errorf("user %q: tasklist: it has no name", text)
			}
			return u, u.check(text)
		}
	default:
		return u, fmt.Errorf("user %q: there is no role %q; the roles are %v", text, part[0], Roles())
	}
	return u, fmt.Errorf("user %q: want %s", text, want)
}

func (u User) check(text string) error {
	if err := ids.CheckName(u.Name); err != nil {
		return fmt.Errorf("user %q: name: %w", text, err)
	}
	if u.Role == Operator && strings.HasPrefix(u.Name, observerInbox) {
		return fmt.Errorf("user %q: name: the inboxes of observers begin with %s", text, observerInbox)
	}
	if !u.Role.Tenant() {
		return nil
	}
	if err := ids.CheckName(u.Domain); err != nil {
		return fmt.Errorf("user %q: domain: %w", text, err)
	}
	for _, tasklist := range u.TasklistNames() {
		if err := ids.CheckName(tasklist); err != nil {
			return fmt.Errorf("user %q: tasklist: %w", text, err)
		}
	}
	if u.Domain == topology.ReservedDomain {
		return fmt.Errorf("user %q: the domain %q is reserved; operators manage domains", text, u.Domain)
	}
	return nil
}

// String is what ParseUser reads.
func (u User) String() string {
	return strings.Join(slices.DeleteFunc([]string{string(u.Role), u.Domain, u.Name, u.Tasklists}, func(s string) bool { return s == "" }), ":")
}

// observerInbox is in front of an observer's name in its inbox prefix, which is among those of operators.
const observerInbox = "observer-"

// Inbox is the inbox prefix that the user connects with, without its last dot.
// No one else may subscribe below it.
func (u User) Inbox() string {
	switch {
	case u.Role.Tenant():
		return topology.UserInbox(u.Domain, string(u.Role)+"-"+u.Name)
	case u.Role == Operator:
		return topology.OperatorInbox(u.Name)
	case u.Role == Observer:
		return topology.OperatorInbox(observerInbox + u.Name)
	}
	return topology.ServiceInbox(string(u.Role))
}
