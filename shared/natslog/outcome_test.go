package natslog

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

// I1: only what certainly was not stored may be reported so, since its sender stores it elsewhere then.
func TestI1_WhatIsNotCertainIsUnknown(t *testing.T) {
	for answer, want := range map[string]error{
		`{"error":{"code":503,"err_code":10077,"description":"input/output error"}}`:  ErrOutcomeUnknown,
		`{"error":{"code":409,"err_code":10158,"description":"duplicate in flight"}}`: ErrOutcomeUnknown,
		`{"stream":"S"}`: ErrOutcomeUnknown,
		`{"stream":`:     ErrOutcomeUnknown,
		``:               ErrOutcomeUnknown,
		`{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`:                ErrFull,
		`{"error":{"code":400,"err_code":10002,"description":"resource limits exceeded"}}`:              ErrFull,
		`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`:                ErrFull,
		`{"error":{"code":503,"err_code":10047,"description":"insufficient storage"}}`:                  ErrFull,
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence"}}`:                   ErrWrongLast,
		`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum"}}`:          ErrNotStored,
		`{"error":{"code":503,"err_code":10077,"description":"maximum messages per subject exceeded"}}`: ErrNotStored,
	} {
		err := appended(&nats.Msg{Data: []byte(answer)}, "s").Err
		if !errors.Is(err, want) || errors.Is(err, ErrNotStored) == errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%s: %v, want %v", answer, err, want)
		}
	}
	none := &nats.Msg{Header: nats.Header{headerStatus: {statusNoResponders}}}
	if err := appended(none, "s").Err; !errors.Is(err, ErrNotStored) {
		t.Errorf("there is no subscriber: %v", err)
	}
	if got := appended(&nats.Msg{Data: []byte(`{"stream":"S","seq":7,"duplicate":true}`)}, "s"); got.Err != nil || got.Seq != 7 || !got.Duplicate {
		t.Errorf("%+v", got)
	}
}
