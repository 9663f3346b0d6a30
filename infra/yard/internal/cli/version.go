package cli

import (
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// versionJSON is what `yard version` says to programs.
type versionJSON struct {
	process.BuildInfo
	// LogVersion is the newest format of stored records that this program reads and writes.
	LogVersion uint32 `json:"log_version"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this command, and the newest log version it knows",
		Long: `Show the version of this command, the commit it was built from, and the newest log version
it reads and writes. It asks no server: yard upgrade status tells what a cluster runs.`,
		Example: "  yard version\n  yard version -o json",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := versionJSON{process.ReadBuildInfo(), logversion.Newest()}
	return a.show(v, func(t *table) {
		commit := v.Commit
		if v.Changed {
			commit += ", with changes"
		}
		t.row("version", v.Version)
		t.row("commit", commit)
		t.row("date", v.Date)
		t.row("go", v.Go+" "+v.Platform)
		t.row("log version", v.LogVersion)
	})
}
