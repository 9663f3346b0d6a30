package topology

import (
	"fmt"
	"slices"
	"strings"
)

// InboxPrefix is where NATS clients have their inboxes unless they choose otherwise.
const InboxPrefix = "_INBOX."

// Inboxes of a sealed cluster: each kind of user has its own, and permissions keep
// every user out of the others'.
const (
	// TenantInboxes is the template of the inboxes of a domain's users.
	TenantInboxes = "_INBOX.t." + domainPlace + "."
	// OperatorInboxes are those of operators. Only administrative requests and health
	// requests are answered there.
	OperatorInboxes = "_INBOX.o."
	// ServiceInboxes are those of the services.
	ServiceInboxes = "_INBOX.s."
)

// domainPlace stands for the domain of a request in a template.
const domainPlace = "{domain}"

// ReplyBytesMax bounds a reply subject. The server cuts the connection of who sends
// a line of more than 4 KiB, and an answer's line may be longer than its request's: it
// names a subject of the answering service too, for the case that no subscriber listens.
const ReplyBytesMax = 1024

// UserInbox is the inbox prefix of one user of a sealed cluster, without its last dot,
// as NATS clients want it: those of a domain have the domain and their name in it.
func UserInbox(domain, user string) string {
	return strings.ReplaceAll(TenantInboxes, domainPlace, domain) + user
}

// OperatorInbox is the inbox prefix of one operator, without its last dot.
func OperatorInbox(user string) string { return OperatorInboxes + user }

// ServiceInbox is the inbox prefix of a service, without its last dot.
func ServiceInbox(service string) string { return ServiceInboxes + service }

// InboxDomain tells whether an inbox prefix, without its last dot, is one that a sealed cluster
// gives to a user, and of which domain the user is: none for operators and services.
func InboxDomain(prefix string) (domain string, sealed bool) {
	before, _, _ := strings.Cut(TenantInboxes, domainPlace)
	if rest, ok := strings.CutPrefix(prefix, before); ok {
		domain, _, _ = strings.Cut(rest, ".")
		return domain, true
	}
	return "", strings.HasPrefix(prefix, OperatorInboxes) || strings.HasPrefix(prefix, ServiceInboxes)
}

// UserOf is the user whose inbox on a sealed cluster a reply subject is in, or "". A user could name the inbox of another user of its domain.
func UserOf(reply string) string {
	before, _, _ := strings.Cut(TenantInboxes, domainPlace)
	user, found := strings.CutPrefix(reply, OperatorInboxes)
	if !found {
		if user, found = strings.CutPrefix(reply, before); found {
			_, user, found = strings.Cut(user, ".")
		}
	}
	if user, _, ok := strings.Cut(user, "."); found && ok {
		return user
	}
	return ""
}

// CheckInboxPrefix says why answers may not be sent below prefix, or nil. A message that a
// service publishes there goes out with its own rights, so no prefix may lead to
// subjects of this system or of the NATS server.
func CheckInboxPrefix(prefix string) error {
	tokens := strings.Split(prefix, ".")
	last := len(tokens) - 1
	switch {
	case last < 1 || tokens[last] != "":
		return fmt.Errorf("%q must be subject tokens that end with a dot, such as %s", prefix, InboxPrefix)
	case slices.Contains(tokens[:last], "") || strings.ContainsAny(prefix, "*> \t\r\n"):
		return fmt.Errorf("%q has an empty token, a wildcard or a space", prefix)
	case tokens[0] == "yard" || prefix[0] == '$' || tokens[0] == domainPlace:
		return fmt.Errorf("%q leads to subjects of the system itself", prefix)
	case strings.Count(prefix, "{")+strings.Count(prefix, "}") > 2*min(strings.Count(prefix, domainPlace), 1):
		return fmt.Errorf("%q has braces other than one %s", prefix, domainPlace)
	}
	return nil
}

// Inboxes decides which reply subjects are answered. An answer is published with the
// engine's rights, by frontend, matching and history alike, so the asker's choice of a
// reply subject must not reach beyond inboxes: below `$JS.API` an answer would be a
// command, and below the log's subjects a record. It is immutable; the zero value
// answers no one.
type Inboxes struct {
	tenants, operators, services []inboxTemplate
}

// inboxTemplate is a prefix, in two parts if the domain stands between them.
type inboxTemplate struct {
	before, after string
	domain        bool
}

// NewInboxes returns the rule of a list of prefixes. A list without {domain} is lenient:
// everybody is answered below each of them, and services below InboxPrefix too. A list
// with {domain} in any of them is strict: requests of a domain are answered below these
// prefixes with the domain in place, operators below OperatorInboxes and services
// below ServiceInboxes; what has no {domain}, such as "_R_.", then serves tenants and
// operators. The error says which prefix is wrong, and how.
func NewInboxes(prefixes []string) (Inboxes, error) {
	if len(prefixes) == 0 {
		return Inboxes{}, fmt.Errorf("must name one prefix at least, such as %s", InboxPrefix)
	}
	var in Inboxes
	for _, p := range prefixes {
		if err := CheckInboxPrefix(p); err != nil {
			return Inboxes{}, err
		}
		before, after, domain := strings.Cut(p, domainPlace)
		t := inboxTemplate{before, after, domain}
		in.tenants = append(in.tenants, t)
		if !domain {
			in.operators = append(in.operators, t)
		}
	}
	if in.Strict() {
		in.operators = append(in.operators, inboxTemplate{before: OperatorInboxes})
		in.services = []inboxTemplate{{before: ServiceInboxes}}
		return in, nil
	}
	in.services = append(slices.Clone(in.operators), inboxTemplate{before: InboxPrefix})
	return in, nil
}

// LenientInboxes answers everybody below InboxPrefix, the default.
func LenientInboxes() Inboxes {
	in, _ := NewInboxes([]string{InboxPrefix}) // InboxPrefix is a good one
	return in
}

// Strict tells whether every domain has inboxes of its own.
func (i Inboxes) Strict() bool {
	return slices.ContainsFunc(i.tenants, func(t inboxTemplate) bool { return t.domain })
}

// Asker tells whether a request of a domain, or of ReservedDomain, may be answered at reply.
func (i Inboxes) Asker(domain, reply string) bool {
	if domain == ReservedDomain {
		return i.Operator(reply)
	}
	return within(i.tenants, domain, reply)
}

// Operator tells whether an operator may be answered at reply.
func (i Inboxes) Operator(reply string) bool { return within(i.operators, "", reply) }

// Service tells whether a service may be answered at reply.
func (i Inboxes) Service(reply string) bool { return within(i.services, "", reply) }

func within(all []inboxTemplate, domain, reply string) bool {
	if len(reply) > ReplyBytesMax {
		return false
	}
	for _, t := range all {
		rest, ok := strings.CutPrefix(reply, t.before)
		if ok && t.domain {
			rest, ok = strings.CutPrefix(rest, domain)
			if ok = ok && domain != ""; ok {
				rest, ok = strings.CutPrefix(rest, t.after)
			}
		}
		if ok && rest != "" {
			return literal(reply)
		}
	}
	return false
}

// literal tells whether a subject is one line of visible characters and names one
// place: a reply that came inside a message was never looked at by a NATS server. No one can
// subscribe to one with an empty token, and the server does not tell of that.
func literal(subject string) bool {
	if strings.Contains(subject, "..") || strings.HasSuffix(subject, ".") {
		return false
	}
	for i := range len(subject) {
		if c := subject[i]; c <= ' ' || c == 0x7f || c == '*' || c == '>' {
			return false
		}
	}
	return true
}
