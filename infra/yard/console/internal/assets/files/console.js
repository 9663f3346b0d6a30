// The charts of the console, and its one key. The pages work without it.
(() => {
	const colours = ["--accent", "--bad", "--quiet"];
	const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
	const hour = 3600;

	// options are those of a chart of the lines, or bars, that the element names.
	const options = (element) => {
		const bars = element.dataset.kind === "bars";
		const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
		return {
			width: element.clientWidth, height: 220, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
			axes: [{ ...axis }, { ...axis, size: 64 }],
			series: [{ label: "Time (UTC)" }, ...element.dataset.lines.split(",").map((label, i) => ({
				label, stroke: colour(colours[i]), width: 2, show: i < 2 || label !== "Ready",
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
		const field = document.querySelector("main input");
		if (field) { event.preventDefault(); field.focus(); }
	});

	addEventListener("resize", drawAll);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
	drawAll();
})();
