package operations

import (
	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// versionJSON is what `yard version` says to programs.
type versionJSON struct {
	process.BuildInfo
	// LogVersion is the newest format of stored records that this program reads and writes.
	LogVersion uint32 `json:"log_version"`
}

// VersionCommand is `yard version`.
func VersionCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this command, and the newest log version it knows",
		Long: `Show the version of this command, the commit it was built from, and the newest log version
it reads and writes. It asks no server: yard upgrade status tells what a cluster runs.`,
		Example: "  yard version\n  yard version -o json",
		Args:    command.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return printVersion(a) },
	}
}

func printVersion(a *command.App) error {
	v := versionJSON{process.ReadBuildInfo(), logversion.Newest()}
	return a.Show(v, func(t *command.Table) {
		commit := v.Commit
		if v.Changed {
			commit += ", with changes"
		}
		t.Row("version", v.Version)
		t.Row("commit", commit)
		t.Row("date", v.Date)
		t.Row("go", v.Go+" "+v.Platform)
		t.Row("log version", v.LogVersion)
	})
}
