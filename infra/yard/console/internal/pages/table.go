package pages

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/forms"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
)

// table is the table of all pages, in the order of the navigation.
func table() []page {
	pages := []page{
		{path: "/{$}", title: "Overview", menu: "Overview", everyone: true, file: "overview", show: showOverview, follow: followCluster, live: liveOverview},
		{path: "/domains", title: "Domains", menu: "Domains", everyone: true, file: "domains", show: showDomains},
		{path: "/fairness", title: "Fairness", menu: "Fairness", file: "fairness", show: showNothing, follow: followCluster, live: liveFairness},
		{path: "/cluster", title: "Cluster", menu: "Cluster", file: "cluster", show: showCluster},

		{path: domainPath, title: "Domain", menu: "Summary", file: "domain", show: showDomain, follow: followDomain, live: liveDomain},
		{path: domainPath + "/tasklists", title: "Tasklists", menu: "Tasklists", file: "tasklists", show: showTasklists},
		{path: domainPath + "/tasklists/{tasklist}", title: "Tasklist", file: "tasklist", show: showTasklist, follow: followTasklist, live: liveTasklist},
		{path: domainPath + "/limits", title: "Limits", menu: "Limits", file: "limits", show: showLimits},
		{path: domainPath + "/limits/{ref...}", title: "Limit", file: "limit", show: showLimit, follow: followLimit, live: liveLimit},
		{path: domainPath + "/tasks", title: "Tasks", menu: "Tasks", file: "tasks", show: showTasks},
		{path: domainPath + "/tasks/{task}", title: "Task", file: "task", show: showTask},
		{path: domainPath + "/types", title: "Types", menu: "Types", file: "types", show: showTypes},
		{path: domainPath + "/types/{type}", title: "Type", file: "type", show: showType},
		{path: domainPath + "/groups", title: "Groups", menu: "Groups", file: "groups", show: showGroups},
		{path: domainPath + "/groups/{group}", title: "Group", file: "group", show: showGroup},
		{path: domainPath + "/timers", title: "Timers ahead", menu: "Timers ahead", file: "timers", show: showTimers},
		{path: domainPath + "/schedules", title: "Schedules", menu: "Schedules", file: "schedules", show: showSchedules},
		{path: domainPath + "/schedules/{schedule}", title: "Schedule", file: "schedule", show: showSchedule},
		{path: domainPath + "/batches", title: "Batches", menu: "Batches", file: "batches", show: showBatches},
		{path: domainPath + "/batches/{batch}", title: "Batch", file: "batch", show: showBatch},
		{path: domainPath + "/keys", title: "Order keys", menu: "Order keys", file: "keys", show: showKeys},
		{path: domainPath + "/workers", title: "Workers", menu: "Workers", file: "workers", show: showWorkers},
		{path: domainPath + "/dead", title: "Dead letters", menu: "Dead letters", file: "dead", show: showDeadCounts},
		{path: domainPath + "/dead/list", title: "List of dead letters", file: "deadlist", show: showDeadList},
		{path: domainPath + "/audit", title: "Changes", menu: "Changes", file: "audit", show: showAudit},
	}
	pages = slices.Concat(pages, taskActions(), stopActions(), workActions(), settingActions(), manyActions())
	for i := range pages {
		pages[i].role = max(pages[i].role, login.Viewer)
	}
	return pages
}

// showNothing is the body of a page that has only a live block.
func showNothing(*Request) (any, error) { return nil, nil }

// Of parses the templates.
func Of(deps Deps) (*Pages, error) {
	p := &Pages{Deps: deps, all: table(), open: map[string]int{}, forms: forms.New(time.Now())}
	var err error
	p.templates, err = parse(p.all)
	return p, err
}
