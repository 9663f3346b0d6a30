// Command lint checks Go packages with staticcheck, the analyzers of go vet, and a few that find what those do not:
//
//	lint [flags] packages...
//
// It is staticcheck's command with more analyzers: staticcheck.conf has the checks, a finding is silenced by `//lint:ignore CHECK why`, and an
// ignore that silences nothing is a finding.
package main

import (
	"os"

	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// mayFail are functions whose error need not be handled, beside those that errcheck knows.
func mayFail() []string {
	return []string{
		// The answer cannot be sent to anyone.
		"(io.Closer).Close",
		"(*os.File).Close",
		"(net.Conn).Close",
		"(net.Listener).Close",
		"(*github.com/nats-io/nats.go.Subscription).Unsubscribe",
		"(*github.com/redis/go-redis/v9.Client).Close",
		"(*google.golang.org/grpc.ClientConn).Close",
		// The terminal and buffers: what fails there fails visibly or never.
		"fmt.Fprint",
		"fmt.Fprintf",
		"fmt.Fprintln",
	}
}

func main() {
	errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols, mayFail()...)
	cmd := lintcmd.NewCommand("lint")
	cmd.ParseFlags(os.Args[1:])
	cmd.AddAnalyzers(simple.Analyzers...)
	cmd.AddAnalyzers(staticcheck.Analyzers...)
	cmd.AddAnalyzers(stylecheck.Analyzers...)
	cmd.AddAnalyzers(quickfix.Analyzers...)
	cmd.AddAnalyzers(unused.Analyzer)
	cmd.AddBareAnalyzers(vet.Suite...)
	cmd.AddBareAnalyzers(nilness.Analyzer, unusedwrite.Analyzer, errcheck.Analyzer, ineffassign.Analyzer)
	cmd.Run()
}
