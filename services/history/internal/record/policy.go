package record

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// rulesMax bounds how many rules of error types a decoder remembers, each of some KiB; past it, it starts again.
const rulesMax = 256

// fillPolicy writes a policy as records carry it.
func fillPolicy(to *logv1.Policy, p *taskstate.Policy) {
	*to = logv1.Policy{}
	to.MaxAttempts, to.InitialIntervalMs, to.Backoff = p.MaxAttempts, p.InitialIntervalMS, p.Backoff
	to.MaxIntervalMs, to.StartToCloseMs, to.HeartbeatTimeoutMs = p.MaxIntervalMS, p.StartToCloseMS, p.HeartbeatTimeoutMS
	to.MaxDeliveries, to.Jitter, to.OnLost, to.OnTimeout = p.MaxDeliveries, int32(p.Jitter), int32(p.OnLost), int32(p.OnTimeout)
	to.OfType, to.TypeRevision = uint32(p.OfType), p.TypeRevision
	if p.Rules == nil {
		return
	}
	to.NonRetryable = p.Rules.NonRetryable
	for _, rule := range p.Rules.ByError {
		to.ByError = append(to.ByError, &logv1.ErrorRetry{
			ErrorType: rule.ErrType, InitialIntervalMs: rule.InitialIntervalMS, Backoff: rule.Backoff,
			MaxIntervalMs: rule.MaxIntervalMS, MaxAttempts: rule.MaxAttempts,
		})
	}
}

// Terms are what a type says of its tasks. Equal ones are one.
func (d *Decoder) Terms(of *logv1.TypeTerms) *taskstate.Terms {
	key := taskstate.Terms{Of: taskstate.TypeName{Domain: d.intern(of.Domain), Type: d.intern(of.Type)}, Policy: d.policy(of.Policy)}
	if known := d.terms[key.Of]; known != nil && known.Policy == key.Policy {
		return known
	}
	if len(d.terms) >= internedMax {
		clear(d.terms)
	}
	d.terms[key.Of] = &key
	return &key
}

// rulesOf are the rules of a policy, as they are kept: equal ones are one.
func (d *Decoder) rulesOf(p *logv1.Policy) *taskstate.Rules {
	if len(p.GetNonRetryable()) == 0 && len(p.GetByError()) == 0 {
		return nil
	}
	key := binary.AppendUvarint(d.key[:0], uint64(len(p.NonRetryable)))
	for _, errType := range p.NonRetryable {
		key = appendText(key, errType)
	}
	for _, rule := range p.ByError {
		key = appendText(key, rule.ErrorType)
		key = binary.AppendVarint(binary.AppendVarint(key, rule.InitialIntervalMs), rule.MaxIntervalMs)
		key = binary.AppendVarint(binary.BigEndian.AppendUint64(key, math.Float64bits(rule.Backoff)), int64(rule.MaxAttempts))
	}
	d.key = key
	if known, ok := d.rules[string(key)]; ok {
		return known
	}
	if len(d.rules) >= rulesMax {
		clear(d.rules)
		clear(d.policies) // which have them
	}
	own := new(taskstate.Rules)
	for _, errType := range p.NonRetryable {
		own.NonRetryable = append(own.NonRetryable, strings.Clone(errType))
	}
	for _, rule := range p.ByError {
		own.ByError = append(own.ByError, taskstate.ErrorRule{
			ErrType: strings.Clone(rule.ErrorType), InitialIntervalMS: rule.InitialIntervalMs, Backoff: rule.Backoff,
			MaxIntervalMS: rule.MaxIntervalMs, MaxAttempts: rule.MaxAttempts,
		})
	}
	d.rules[string(key)] = own
	return own
}

// appendText appends a text behind its length.
func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}
