package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// envContext names the context of all commands of a shell.
const envContext = "YARD_CONTEXT"

// contextEntry is where a command goes and as which user. Of keys and certificates it has the paths.
type contextEntry struct {
	URL         string `json:"url,omitempty"`
	Domain      string `json:"domain,omitempty"`
	Creds       string `json:"creds,omitempty"`
	NKey        string `json:"nkey,omitempty"`
	TLSCA       string `json:"tls_ca,omitempty"`
	TLSCert     string `json:"tls_cert,omitempty"`
	TLSKey      string `json:"tls_key,omitempty"`
	InboxPrefix string `json:"inbox_prefix,omitempty"`
}

// contextBook is the file of all contexts.
type contextBook struct {
	// Current is the one in use; empty = none.
	Current  string                  `json:"current,omitempty"`
	Contexts map[string]contextEntry `json:"contexts"`
}

// contextFile is the path of the book, in the user's folder for configuration.
func contextFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "yard", "contexts.json"), nil
}

// readContexts reads the book; without a file, or a folder for it, it is empty.
func readContexts() (contextBook, error) {
	book := contextBook{Contexts: map[string]contextEntry{}}
	file, err := contextFile()
	if err != nil {
		return book, nil //nolint:nilerr // a user without a folder has no contexts
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return book, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &book)
	}
	if err != nil {
		return book, fmt.Errorf("contexts: %s: %w; repair or remove the file, and create the contexts again with `yard context add`", file, err)
	}
	if book.Contexts == nil {
		book.Contexts = map[string]contextEntry{}
	}
	return book, nil
}

// write stores the book, as a whole or not at all.
func (b contextBook) write() error {
	file, err := contextFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	// CreateTemp makes it readable for its owner only.
	fresh, err := os.CreateTemp(filepath.Dir(file), ".contexts-*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(append(text, '\n'))
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}

// entry is a context by its name.
func (b contextBook) entry(name string) (contextEntry, error) {
	e, ok := b.Contexts[name]
	if !ok {
		return e, usagef("there is no context %q; `yard context list` shows those there are, `yard context add` makes one", name)
	}
	return e, nil
}

// contextSetting is a flag that a context may set.
type contextSetting struct {
	flag, env string
	// otherwise is the default where neither flag, context nor environment says anything.
	otherwise string
	// path: it names a file.
	path bool
	of   func(*contextEntry) *string
	into func(*app) *string
}

// contextSettings are all of them; the domain is the last, the others say how to connect.
func contextSettings() []contextSetting {
	return []contextSetting{
		{"url", envURL, nats.DefaultURL, false, func(e *contextEntry) *string { return &e.URL }, func(a *app) *string { return &a.url }},
		{"creds", envCreds, "", true, func(e *contextEntry) *string { return &e.Creds }, func(a *app) *string { return &a.login.Credentials }},
		{"nkey", envNKey, "", true, func(e *contextEntry) *string { return &e.NKey }, func(a *app) *string { return &a.login.NKeySeed }},
		{"tls-ca", envCA, "", true, func(e *contextEntry) *string { return &e.TLSCA }, func(a *app) *string { return &a.login.TLS.CA }},
		{"tls-cert", envCert, "", true, func(e *contextEntry) *string { return &e.TLSCert }, func(a *app) *string { return &a.login.TLS.Cert }},
		{"tls-key", envKey, "", true, func(e *contextEntry) *string { return &e.TLSKey }, func(a *app) *string { return &a.login.TLS.Key }},
		{"inbox-prefix", envInbox, "", false, func(e *contextEntry) *string { return &e.InboxPrefix }, func(a *app) *string { return &a.login.InboxPrefix }},
		{domainFlag, envDomain, domainDefault, false, func(e *contextEntry) *string { return &e.Domain }, func(a *app) *string { return &a.domain }},
	}
}

const domainFlag = "domain"

// resolve takes the context into the settings of a command line. A flag wins. A context that is named is
// taken whole, in place of the environment. The one in use gives way to it: what
// says how to connect all together, so that one cluster's key is not taken to another.
func (a *app) resolve(cmd *cobra.Command) error {
	if !connects(cmd) {
		return nil
	}
	book, err := readContexts()
	if err != nil {
		return err
	}
	name := a.context
	if name == "" {
		name = book.Current
	}
	if name == "" {
		return nil
	}
	entry, err := book.entry(name)
	if err != nil {
		return err
	}
	flags, settings := cmd.Flags(), contextSettings()
	elsewhere := flags.Changed("url")
	for _, s := range settings {
		elsewhere = elsewhere || s.flag != domainFlag && os.Getenv(s.env) != ""
	}
	for _, s := range settings {
		value := *s.of(&entry)
		switch {
		case flags.Changed(s.flag):
		case a.context != "":
			*s.into(a) = value
			if value == "" {
				*s.into(a) = s.otherwise
			}
		case value == "", s.flag != domainFlag && elsewhere, s.flag == domainFlag && os.Getenv(envDomain) != "":
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
	return !cmd.HasSubCommands() || cmd.Name() == "worker" // which runs tasks, and has a command below it
}

// onCluster tells whether the command line names a cluster, for commands that else make one.
func (a *app) onCluster(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("url") || cmd.Flags().Changed("context")
}

// entryOfFlags is a context of the flags that were given.
func entryOfFlags(flags *pflag.FlagSet) (contextEntry, error) {
	var entry contextEntry
	given := false
	for _, s := range contextSettings() {
		if !flags.Changed(s.flag) {
			continue
		}
		given = true
		value := flags.Lookup(s.flag).Value.String()
		if s.path {
			// It is used from anywhere.
			file, err := filepath.Abs(value)
			if err != nil {
				return entry, err
			}
			if _, err := os.Stat(file); err != nil {
				return entry, usagef("--%s: %w", s.flag, err)
			}
			value = file
		}
		*s.of(&entry) = value
	}
	if !given {
		return entry, usagef("a context wants at least one of --url, --domain, --creds, --nkey, --tls-ca, --tls-cert, --tls-key, --inbox-prefix")
	}
	if entry.Domain != "" {
		if err := ids.CheckName(entry.Domain); err != nil {
			return entry, usagef("--domain %q %w", entry.Domain, err)
		}
	}
	return entry, checkNoSecret(entry.URL)
}

// checkNoSecret refuses URLs with a user or password: contexts hold no secrets.
func checkNoSecret(urls string) error {
	for server := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.User != nil {
			return usagef("--url: a context holds no secret and takes no user or password; name a file with --creds or --nkey")
		}
	}
	return nil
}
