package record

import (
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// storedHeaders are headers as records carry them.
func storedHeaders(all []taskstate.Header) []*logv1.Header {
	if len(all) == 0 {
		return nil
	}
	slab, stored := make([]logv1.Header, len(all)), make([]*logv1.Header, len(all))
	for i, h := range all {
		slab[i].Name, slab[i].Value = h.Name, h.Value
		stored[i] = &slab[i]
	}
	return stored
}

// headers reads those of a record: names are interned, since the tasks of one program share them.
func (d *Decoder) headers(stored []*logv1.Header) *[]taskstate.Header {
	if len(stored) == 0 {
		return nil
	}
	all := make([]taskstate.Header, len(stored))
	for i, h := range stored {
		all[i] = taskstate.Header{Name: d.intern(h.Name), Value: strings.Clone(h.Value)}
	}
	return &all
}

// publicHeaders are headers as the API shows them.
func publicHeaders(all []taskstate.Header) map[string]string {
	if len(all) == 0 {
		return nil
	}
	shown := make(map[string]string, len(all))
	for _, h := range all {
		shown[h.Name] = h.Value
	}
	return shown
}
