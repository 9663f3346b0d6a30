package sealed_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

func TestStart(t *testing.T) {
	dir := t.TempDir()
	if err := sealed.Render(dir, topology.Partitioning{}, []string{"shop"}); err != nil {
		t.Fatal(err)
	}
	log := new(sealed.Log)
	s, err := stack.Start(t.Context(), stack.Config{Auth: dir, Tables: stack.TablesMemory, Log: log.Logger()})
	if err != nil {
		t.Fatal(err, log.Refused())
	}
	defer s.Close(t.Context())
	op, err := sealed.Connect(s, sealed.Operator())
	if err != nil {
		t.Fatal(err)
	}
	admin, _ := yard.NewAdmin(op)
	if _, err := admin.PutDomain(t.Context(), yard.Domain{Name: "shop"}); err != nil {
		t.Error(err)
	}
	if err := log.Refused(); err != nil {
		t.Error(err)
	}
}
