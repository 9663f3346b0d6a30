package pages

import "github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"

// domainPath is the beginning of the paths of all pages of a domain.
const domainPath = "/domains/{domain}"

// all is the table of all pages, in the order of the navigation.
func all() []page {
	pages := []page{
		{path: "/{$}", title: "Overview", menu: "Overview", everyone: true, file: "overview", show: overview, follow: followCluster, live: liveOverview},
		{path: "/domains", title: "Domains", menu: "Domains", everyone: true, file: "domains", show: domains},
		{path: "/fairness", title: "Fairness", menu: "Fairness", file: "fairness", show: nothing, follow: followCluster, live: liveFairness},
		{path: "/cluster", title: "Cluster", menu: "Cluster", file: "cluster", show: cluster},

		{path: domainPath, title: "Domain", menu: "Summary", file: "domain", show: domain, follow: followDomain, live: liveDomain},
		{path: domainPath + "/tasklists", title: "Tasklists", menu: "Tasklists", file: "tasklists", show: tasklists},
		{path: domainPath + "/tasklists/{tasklist}", title: "Tasklist", file: "tasklist", show: tasklist, follow: followTasklist, live: liveTasklist},
		{path: domainPath + "/limits", title: "Limits", menu: "Limits", file: "limits", show: limits},
		{path: domainPath + "/limits/{ref...}", title: "Limit", file: "limit", show: limit, follow: followLimit, live: liveLimit},
		{path: domainPath + "/tasks", title: "Tasks", menu: "Tasks", file: "tasks", show: tasks},
		{path: domainPath + "/tasks/{task}", title: "Task", file: "task", show: task},
		{path: domainPath + "/timers", title: "Timers ahead", menu: "Timers ahead", file: "timers", show: timersAhead},
		{path: domainPath + "/schedules", title: "Schedules", menu: "Schedules", file: "schedules", show: schedules},
		{path: domainPath + "/schedules/{schedule}", title: "Schedule", file: "schedule", show: schedule},
		{path: domainPath + "/batches", title: "Batches", menu: "Batches", file: "batches", show: batches},
		{path: domainPath + "/batches/{batch}", title: "Batch", file: "batch", show: batch},
		{path: domainPath + "/keys", title: "Order keys", menu: "Order keys", file: "keys", show: keys},
		{path: domainPath + "/workers", title: "Workers", menu: "Workers", file: "workers", show: workers},
		{path: domainPath + "/dead", title: "Dead letters", menu: "Dead letters", file: "dead", show: deadCounts},
		{path: domainPath + "/dead/list", title: "List of dead letters", file: "deadlist", show: deadList},
	}
	for i := range pages {
		pages[i].role = max(pages[i].role, login.Viewer)
	}
	return pages
}

// nothing is the body of a page that has only a live block.
func nothing(*Request) (any, error) { return nil, nil }
