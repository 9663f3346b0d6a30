package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// Limits of a stream: how long one message may take to be written, how long it is silent at most, and how long it lasts; then the browser connects again.
const (
	streamWrite  = 10 * time.Second
	streamSilent = 15 * time.Second
	streamMax    = time.Hour
	// streamMissed is how many samples may fail one after the other until the page says so.
	streamMissed = 3
)

// stream sends the page's live block each time that it has changed, and the numbers of each sample as the event "sample". All streams of a topic share its calls.
func (p *Pages) stream(r *Request, w http.ResponseWriter, one *page) {
	topic := one.follow(r)
	watch, err := p.Sampler.Watch(topic)
	if err != nil {
		p.fail(r, w, err)
		return
	}
	defer watch.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to := http.NewResponseController(w)
	send := func(text string) bool {
		_ = to.SetWriteDeadline(time.Now().Add(streamWrite)) // a server without deadlines writes all the same
		_, err := fmt.Fprint(w, text)
		return err == nil && to.Flush() == nil
	}
	silent, over := time.NewTicker(streamSilent), time.NewTimer(streamMax)
	defer silent.Stop()
	defer over.Stop()
	var sent []byte
	var last time.Time
	for ok := send(": the stream is open\n\n"); ok; {
		select {
		case <-r.Context().Done():
			return
		case <-over.C:
			return
		case <-silent.C:
			if _, err := r.way.Identify(r.Request); err != nil { // the session has ended
				return
			}
			ok = send(": still here\n\n")
		case <-watch.Changed:
			if r.revoked() {
				return
			}
			sample := p.Sampler.Last(topic)
			if sample.Value == nil || sample.At.Equal(last) && time.Since(last) < streamMissed*sampler.Every {
				continue
			}
			r.Now = time.Now()
			text, err := p.templates.execute(one.file, "live", frame{Live: one.live(r, sample), Who: r.Who, Domain: r.Domain, Now: r.Now})
			if err != nil {
				p.Log.ErrorContext(r.Context(), "a stream of the console could not be written", "error", err)
				return
			}
			if !bytes.Equal(text, sent) {
				ok, sent = send(event("", text)), text
			}
			if hour := p.hour(r, topic); ok && len(hour) > 0 && !sample.At.Equal(last) && hour[len(hour)-1].At.Equal(sample.At) {
				ok = send(event("sample", []byte(chartOf(hour[len(hour)-1:]))))
			}
			last = sample.At
		}
	}
}

// hour is the numbers of a topic of the last hour. Those of the cluster are for users who may see all domains.
func (p *Pages) hour(r *Request, topic sampler.Topic) []sampler.Point {
	if r.Domain == "" && !r.Who.SeesAll() {
		return nil
	}
	return p.Sampler.Hour(topic)
}

// event is one message of a stream.
func event(name string, text []byte) string {
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&b, "data: %s\n", bytes.TrimRight(line, "\n"))
	}
	b.WriteByte('\n')
	return b.String()
}

// chartOf is points as the script reads them: seconds of Unix time, and then each number's values.
func chartOf(points []sampler.Point) string {
	if len(points) == 0 {
		return "[]"
	}
	columns := make([][]float64, 1+len(points[0].Numbers))
	for _, p := range points {
		columns[0] = append(columns[0], float64(p.At.Unix()))
		for i, n := range p.Numbers {
			columns[i+1] = append(columns[i+1], n)
		}
	}
	text, err := json.Marshal(columns)
	if err != nil {
		return "[]" // a number that is none is not drawn
	}
	return string(text)
}
