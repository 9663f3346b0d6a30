// The charts of the console, and its one key. The pages work without it.
(() => {
	const colours = ["--accent", "--bad", "--quiet"];
	const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const minute = 60, hour = 3600;

	// labels are times of an axis, in UTC: with the date if they are more than a day apart in all.
	const labels = (times) => times.map((seconds) => {
		const text = new Date(seconds * 1e3).toISOString();
		return times.at(-1) - times[0] > 24 * hour ? text.slice(5, 10) + " " + text.slice(11, 16) : text.slice(11, 19);
	});

	// fromZero is a scale of numbers that are never below 0; half is half of the time from a bar to the next.
	const fromZero = (_, from, to) => [0, Math.max(to ?? 0, 1) * 1.1];
	const half = (times) => times.length > 1 ? (times[1] - times[0]) / 2 : minute;

	// options are those of a chart of the lines, or bars, that the element names.
	const options = (element) => {
		const lines = element.dataset.lines.split(",");
		const bars = element.dataset.kind === "bars";
		const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
		return {
			width: element.clientWidth, height: 220, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
			// Numbers of tasks beside rates have a scale of their own, on the right. Bars need room on both sides.
			scales: { y: { range: fromZero }, tasks: { range: fromZero }, x: { range: (chart, from, to) => bars ? [from - half(chart.data[0]), to + half(chart.data[0])] : [Math.min(from, to - minute), to] } },
			axes: [{ ...axis, values: (_, times) => labels(times) }, { ...axis, size: 64, incrs: bars ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7] : undefined }, ...(lines.includes("Ready") ? [{ ...axis, scale: "tasks", side: 1, size: 64, grid: { show: false } }] : [])],
			series: [{ label: "Time (UTC)", value: (_, seconds) => seconds == null ? "–" : new Date(seconds * 1e3).toISOString().slice(0, 19).replace("T", " ") }, ...lines.map((label, i) => ({
				label, stroke: colour(colours[i]), width: 2, ...(label === "Ready" ? { scale: "tasks", dash: [4, 4] } : label === "Most" ? { dash: [4, 4] } : {}),
				...(bars ? { fill: colour("--accent"), paths: uPlot.paths.bars({ size: [0.8, 60] }), points: { show: false } } : {}),
			}))],
		};
	};

	const charts = new Map();
	const draw = (element) => {
		charts.get(element)?.destroy();
		const data = element.yardData ?? JSON.parse(element.dataset.chart);
		element.yardData = data.length ? data : [[], ...element.dataset.lines.split(",").map(() => [])];
		charts.set(element, new uPlot(options(element), element.yardData, element));
	};
	const drawAll = () => document.querySelectorAll("[data-chart]").forEach(draw);

	// A sample of the stream is one more point; points older than an hour go.
	document.addEventListener("sample", (event) => {
		const point = JSON.parse(event.detail.data);
		for (const [element, chart] of charts) {
			const data = element.yardData;
			if (element.dataset.kind === "bars" || data.length !== point.length) continue;
			if (data[0].at(-1) >= point[0][0]) continue;
			data.forEach((column, i) => column.push(point[i][0]));
			while (data[0][0] < point[0][0] - hour) data.forEach((column) => column.shift());
			chart.setData(data);
		}
	});

	// The key / goes to the first field of the page.
	document.addEventListener("keydown", (event) => {
		if (event.key !== "/" || event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
		const field = document.querySelector("main input:not([type=hidden])");
		if (field) { event.preventDefault(); field.focus(); }
	});

	addEventListener("resize", drawAll);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	drawAll();
})();
