package signals

// The metrics of every service, in the order of the page.
var (
	ClockSkew = process.add(Metric{
		Name: "yardmaster.clock.skew", Kind: Gauge, Unit: Seconds,
		Means: "How far this node's clock is ahead of the NATS server's; NaN = not known.",
		Worry: "beyond 1 s in either direction; if all nodes agree, the server's clock is wrong",
	})
	PartitionStopped = process.add(Metric{
		Name: "yardmaster.partition.stopped", Kind: Gauge, Attributes: []string{Service, Partition},
		Means: "1 while this node has given up the partition; its log says why.",
		Worry: "1",
	})
	PartitionsUnowned = process.add(Metric{
		Name: "yardmaster.partitions.unowned", Kind: Gauge, Unit: "{partition}", Attributes: []string{Service},
		Means: "Partitions that no live node serves.",
		Worry: "above 0 for 30 s",
	})
	AppendDuration = process.add(Metric{
		Name: "yardmaster.append.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Service, Operation}, Buckets: quick(),
		Means: "From sending to JetStream's acknowledgement, by what is written: submit, events, archive, timer store, fire, quarantine. Failures are not included.",
		Worry: "p99 above 0.1 s: the servers' disks are slow, or the streams' leaders are elsewhere",
	})
	RepliesRefused = process.add(Metric{
		Name: "yardmaster.replies.refused", Kind: Counter, Unit: "{answer}", Attributes: []string{Service},
		Means: "Answers dropped because the reply subject is not an inbox of the client.",
		Worry: "any: an attack, or an inbox prefix that is not configured",
	})
	SpansDropped = process.add(Metric{
		Name: "yardmaster.spans.dropped", Kind: Counter, Unit: "{span}", Attributes: []string{Service},
		Means: "Spans that were lost: the queue was full, or the collector did not accept them.",
		Worry: "a rate: traces have holes. Sample less, or raise OTEL_BSP_MAX_QUEUE_SIZE",
	})
)
