package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// envContext names the context of all commands of a shell.
const envContext = "YARD_CONTEXT"

// ContextEntry is where a command goes and as which user. Of keys and certificates it has the paths.
type ContextEntry struct {
	URL         string `json:"url,omitempty"`
	Domain      string `json:"domain,omitempty"`
	Creds       string `json:"creds,omitempty"`
	NKey        string `json:"nkey,omitempty"`
	TLSCA       string `json:"tls_ca,omitempty"`
	TLSCert     string `json:"tls_cert,omitempty"`
	TLSKey      string `json:"tls_key,omitempty"`
	InboxPrefix string `json:"inbox_prefix,omitempty"`
	CodecURL    string `json:"codec_url,omitempty"`
}

// ContextBook is the file of all contexts.
type ContextBook struct {
	// Current is the one in use; empty = none.
	Current  string                  `json:"current,omitempty"`
	Contexts map[string]ContextEntry `json:"contexts"`
}

// contextFile is the path of the book, in the user's folder for configuration.
func contextFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "yard", "contexts.json"), nil
}

// ReadContexts reads the book; without a file, or a folder for it, it is empty.
func ReadContexts() (ContextBook, error) {
	book := ContextBook{Contexts: map[string]ContextEntry{}}
	file, err := contextFile()
	if err != nil {
		return book, nil // a user without a folder has no contexts
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return book, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &book)
	}
	if err != nil {
		return book, fmt.Errorf("contexts: %s: %w; repair or remove the file, and create the contexts again with `yard context put`", file, err)
	}
	if book.Contexts == nil {
		book.Contexts = map[string]ContextEntry{}
	}
	return book, nil
}

// write stores the book, as a whole or not at all.
func (b ContextBook) write(file string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return filelock.Replace(file, append(text, '\n'))
}

// contextLockWithin is how long a change waits for others to end theirs, which take moments.
const contextLockWithin = 10 * time.Second

// ChangeContexts changes the book and stores it, unless change returns an error. Changes of several processes follow one
// another: each begins with what the one before has stored. The lock is on a file of its own, since each change replaces
// that of the book.
func ChangeContexts(ctx context.Context, change func(*ContextBook) error) (book ContextBook, err error) {
	file, err := contextFile()
	if err != nil {
		return book, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return book, err
	}
	name := filepath.Join(filepath.Dir(file), ".contexts.lock")
	lock, err := filelock.Take(ctx, name, contextLockWithin)
	if err != nil {
		return book, fmt.Errorf("contexts: lock %s: %w", name, err)
	}
	defer func() { _ = lock.Close() }() // nothing was written to it
	if book, err = ReadContexts(); err != nil {
		return book, err
	}
	if err := change(&book); err != nil {
		return book, err
	}
	return book, book.write(file)
}

// Entry is a context by its name.
func (b ContextBook) Entry(name string) (ContextEntry, error) {
	e, ok := b.Contexts[name]
	if !ok {
		return e, Usagef("there is no context %q; `yard context list` shows those there are, `yard context put` makes one", name)
	}
	return e, nil
}

// ContextSetting is a flag that a context may set.
type ContextSetting struct {
	Flag, env, usage string
	// otherwise is the default where neither flag, context nor environment says anything.
	otherwise string
	// path: it names a file, so that no secret stands on a command line.
	path bool
	Of   func(*ContextEntry) *string
	into func(*App) *string
}

// connects reports whether it says how to connect. The others are the domain, and the codec server of what tasks carry.
func (s ContextSetting) connects() bool { return s.Flag != DomainFlag && s.Flag != codecFlag }

// ContextSettings are all of them. The variables of the login are those of
// the nats command.
func ContextSettings() []ContextSetting {
	return []ContextSetting{
		{"url", "NATS_URL", "NATS server, or several separated by commas", nats.DefaultURL, false, func(e *ContextEntry) *string { return &e.URL }, func(a *App) *string { return &a.URL }},
		{"creds", "NATS_CREDS", "path of a .creds file with JWT and key", "", true, func(e *ContextEntry) *string { return &e.Creds }, func(a *App) *string { return &a.Login.Credentials }},
		{"nkey", "NATS_NKEY", "path of a file with an nkey seed", "", true, func(e *ContextEntry) *string { return &e.NKey }, func(a *App) *string { return &a.Login.NKeySeed }},
		{"tls-ca", "NATS_CA", "PEM file of the authorities that sign the servers' certificates", "", true, func(e *ContextEntry) *string { return &e.TLSCA }, func(a *App) *string { return &a.Login.TLS.CA }},
		{"tls-cert", "NATS_CERT", "PEM file of this client's certificate", "", true, func(e *ContextEntry) *string { return &e.TLSCert }, func(a *App) *string { return &a.Login.TLS.Cert }},
		{"tls-key", "NATS_KEY", "PEM file of its key", "", true, func(e *ContextEntry) *string { return &e.TLSKey }, func(a *App) *string { return &a.Login.TLS.Key }},
		{"inbox-prefix", "YARD_INBOX_PREFIX", "subject prefix of the inboxes, as a sealed cluster gives one to each user", "", false, func(e *ContextEntry) *string { return &e.InboxPrefix }, func(a *App) *string { return &a.Login.InboxPrefix }},
		{codecFlag, "YARD_CODEC_URL", "codec server that encodes and decodes payloads, results and texts of failures, such as https://codec.example.com", "", false, func(e *ContextEntry) *string { return &e.CodecURL }, func(a *App) *string { return &a.CodecURL }},
		{DomainFlag, envDomain, "tenant to act for", domainDefault, false, func(e *ContextEntry) *string { return &e.Domain }, func(a *App) *string { return &a.Domain }},
	}
}

// Flags adds those of all commands.
func (a *App) Flags(flags *pflag.FlagSet) {
	for _, s := range ContextSettings() {
		short := map[string]string{DomainFlag: "d"}[s.Flag]
		EnvVarP(flags, s.into(a), s.Flag, short, s.env, s.otherwise, s.usage)
	}
	flags.StringVar(&a.Context, "context", os.Getenv(envContext), "context to take server, login and domain from, see yard context (environment: "+envContext+")")
	flags.VarP(a.output(), "output", "o", "how to print: table, wide (a table with more columns, nothing cut) or json")
	flags.BoolFunc("json", "short for --output json", func(text string) error {
		if text != "true" {
			return fmt.Errorf("want no value, or another --output")
		}
		return a.output().Set(OutputJSON)
	})
	DurationVar(flags, &a.Timeout, "timeout", 10*time.Second, "how long to try")
}

// EnvVarP adds a flag whose value is otherwise that of an environment variable. The help does not show it: it may have a password.
func EnvVarP(flags *pflag.FlagSet, into *string, name, short, env, otherwise, usage string) {
	flags.StringVarP(into, name, short, otherwise, usage+" (environment: "+env+")")
	*into = cmp.Or(os.Getenv(env), otherwise)
}

// envDomain and domainDefault, which `yard dev` makes, are the domain of who names none.
const envDomain, domainDefault = "YARD_DOMAIN", "default"

const DomainFlag, codecFlag = "domain", "codec-url"

// Resolve takes the context into the settings of a command line. A flag wins. A context that is named is
// taken whole, in place of the environment. The one in use gives way to it: what
// says how to connect all together, so that one cluster's key is not taken to another.
func (a *App) Resolve(cmd *cobra.Command) error {
	if !connects(cmd) {
		return nil
	}
	book, err := ReadContexts()
	if err != nil {
		return err
	}
	name := a.Context
	name = cmp.Or(name, book.Current)
	if name == "" {
		return nil
	}
	entry, err := book.Entry(name)
	if err != nil {
		return err
	}
	flags, settings := cmd.Flags(), ContextSettings()
	elsewhere := flags.Changed("url")
	for _, s := range settings {
		elsewhere = elsewhere || s.connects() && os.Getenv(s.env) != ""
	}
	for _, s := range settings {
		value := *s.Of(&entry)
		switch {
		case flags.Changed(s.Flag):
		case a.Context != "":
			*s.into(a) = value
			if value == "" {
				*s.into(a) = s.otherwise
			}
		case value == "", s.connects() && elsewhere, !s.connects() && os.Getenv(s.env) != "":
		default:
			*s.into(a) = value
		}
	}
	return nil
}

// connects tells whether a command may need a context. The others work with a broken one.
func connects(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		switch name := c.Name(); {
		case name == "context", name == "version", name == "completion", name == "help", strings.HasPrefix(name, "__"):
			return false
		}
	}
	return !cmd.HasSubCommands() || cmd.Name() == "worker" || cmd.Name() == "relay" || cmd.Name() == "bench" // which do something, and have commands below them
}

// OnCluster tells whether the command line names a cluster, for commands that else make one.
func (a *App) OnCluster(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("url") || cmd.Flags().Changed("context")
}

// EntryOfFlags is a context of the flags that were given.
func EntryOfFlags(flags *pflag.FlagSet) (ContextEntry, error) {
	var entry ContextEntry
	given := false
	for _, s := range ContextSettings() {
		if !flags.Changed(s.Flag) {
			continue
		}
		given = true
		value := flags.Lookup(s.Flag).Value.String()
		if s.path {
			// It is used from anywhere.
			file, err := filepath.Abs(value)
			if err != nil {
				return entry, err
			}
			if _, err := os.Stat(file); err != nil {
				return entry, Usagef("--%s: %w", s.Flag, err)
			}
			value = file
		}
		*s.Of(&entry) = value
	}
	if !given {
		return entry, Usagef("a context wants at least one of --url, --domain, --creds, --nkey, --tls-ca, --tls-cert, --tls-key, --inbox-prefix, --codec-url")
	}
	if entry.Domain != "" {
		if err := ids.CheckName(entry.Domain); err != nil {
			return entry, Usagef("--domain %q %w", entry.Domain, err)
		}
	}
	return entry, checkNoSecret(entry.URL)
}

// checkNoSecret refuses URLs with a user or password: contexts hold no secrets.
func checkNoSecret(urls string) error {
	for server := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.User != nil {
			return Usagef("--url: a context holds no secret and takes no user or password; name a file with --creds or --nkey")
		}
	}
	return nil
}

// options are those of every connection of the command.
func (a *App) options(more ...nats.Option) ([]nats.Option, error) {
	login, err := a.Login.Options()
	if err != nil {
		return nil, UsageError{err}
	}
	login = append(login, nats.Name("yard-cli"), nats.Timeout(a.Timeout), nats.ErrorHandler(a.refused))
	return append(login, more...), nil
}

// refused takes what the server reports of a connection. A user who lacks a right gets no answer, so there is nothing to wait for.
func (a *App) refused(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		fmt.Fprintln(a.Err, "warning:", err)
		return
	}
	next := "this user lacks the right: log in as another one with --nkey or --creds, or name the user's own --domain"
	if strings.Contains(err.Error(), "Subscription to") {
		next = "name the user's own --inbox-prefix, which `yard auth render` prints for each"
	}
	a.Deny(fault.New(fault.PermissionDenied, "%v; %s", err, next))
}

// Connect connects to NATS; the caller closes it.
func (a *App) Connect() (*nats.Conn, error) {
	options, err := a.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(a.URL, options...)
	if err != nil {
		return nil, unreachable(fmt.Errorf("connect to NATS: %w", natsrpc.WithoutURL(err)))
	}
	return nc, nil
}
