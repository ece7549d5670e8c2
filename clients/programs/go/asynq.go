package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

const concurrency = 4

// asynqJobs has tasks with priorities, retries, a delay, a deadline of their results, unique ids, a group and a schedule done, while the
// server is killed.
func asynqJobs() {
	redis := asynq.RedisClientOpt{Addr: address}
	client := asynq.NewClient(redis)
	inspector := asynq.NewInspector(redis)
	enqueue := func(kind string, number int, options ...asynq.Option) error {
		_, err := client.Enqueue(asynq.NewTask(kind, []byte(fmt.Sprint(number)), options...))
		return err
	}

	count := func(_ context.Context, task *asynq.Task) error {
		time.Sleep(2 * time.Millisecond)
		done.note(fmt.Sprintf("%s %s", task.Type(), task.Payload()))
		_, err := task.ResultWriter().Write(task.Payload())
		return err
	}
	handlers := asynq.NewServeMux()
	handlers.HandleFunc("count", count)
	handlers.HandleFunc("later", count)
	handlers.HandleFunc("tick", count)
	handlers.HandleFunc("unique", count)
	handlers.HandleFunc("batch", count)
	handlers.HandleFunc("fails twice", func(ctx context.Context, task *asynq.Task) error {
		retried, _ := asynq.GetRetryCount(ctx)
		done.note(fmt.Sprintf("attempts of %s %d", task.Payload(), retried))
		if retried < 2 {
			return errors.New("this is tried again")
		}
		return nil
	})
	handlers.HandleFunc("fails", func(context.Context, *asynq.Task) error {
		return fmt.Errorf("as wanted: %w", asynq.SkipRetry)
	})
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency:              concurrency,
		Queues:                   map[string]int{"critical": 6, "default": 3},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 10 * time.Millisecond },
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		TaskCheckInterval:        50 * time.Millisecond,
		GroupGracePeriod:         time.Second,
		GroupAggregator: asynq.GroupAggregatorFunc(func(group string, tasks []*asynq.Task) *asynq.Task {
			return asynq.NewTask("batch", []byte(fmt.Sprint(len(tasks)-10)))
		}),
	})
	must(server.Start(handlers))
	scheduler := asynq.NewScheduler(redis, nil)
	_, err := scheduler.Register("@every 1s", asynq.NewTask("tick", []byte("0")))
	must(err)
	must(scheduler.Start())

	for number := 0; number < 5; number++ {
		must(enqueue("fails twice", number, asynq.MaxRetry(3)))
	}
	for number := 0; number < 5; number++ {
		done.expect(fmt.Sprintf("attempts of %d", number), 3, 0)
	}
	must(enqueue("fails", 0))
	waitFor("the task that fails", func() bool {
		archived, err := inspector.ListArchivedTasks("default")
		return err == nil && len(archived) == 1 && archived[0].LastErr != ""
	})
	must(enqueue("later", 0, asynq.ProcessIn(time.Second)))
	scheduled, err := inspector.ListScheduledTasks("default")
	must(err)
	check(len(scheduled) == 1 && len(done.of("later")) == 0, "scheduled: %v", scheduled)
	done.expect("later", 1, 0)
	must(enqueue("unique", 0, asynq.Unique(time.Hour), asynq.ProcessIn(500*time.Millisecond)))
	check(errors.Is(enqueue("unique", 0, asynq.Unique(time.Hour)), asynq.ErrDuplicateTask), "a unique task was queued twice")
	must(enqueue("unique", 1, asynq.TaskID("one"), asynq.Retention(time.Hour)))
	check(errors.Is(enqueue("unique", 1, asynq.TaskID("one")), asynq.ErrTaskIDConflict), "an id was queued twice")
	done.expect("unique", 2, 0)
	waitFor("a result", func() bool {
		task, err := inspector.GetTaskInfo("default", "one")
		return err == nil && string(task.Result) == "1"
	})
	for number := 0; number < 10; number++ {
		must(enqueue("grouped", number, asynq.Group("letters")))
	}
	done.expect("batch", 1, 0)

	for number := 0; number < 300; number++ {
		must(enqueue("count", number, asynq.Queue([]string{"critical", "default"}[number%2])))
	}
	waitFor("some of the tasks", func() bool { return len(done.of("count")) >= 60 })
	killServer()
	ticks := done.of("tick")["tick 0"]
	for number := 300; number < 400; number++ {
		must(enqueue("count", number))
	}
	// A task that was handed out at the moment of the kill stays active until its lease of 30 seconds is over.
	listed := func(list func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error)) (lines []string) {
		for _, queue := range []string{"critical", "default"} {
			tasks, err := list(queue)
			must(err)
			for _, task := range tasks {
				lines = append(lines, fmt.Sprintf("%s %s", task.Type, task.Payload))
			}
		}
		return lines
	}
	// Inspector.GetQueueInfo would count them, too, and asks for MEMORY USAGE, which Tidemark lacks: `lacks` in programs.json.
	active := func() []string { return listed(inspector.ListActiveTasks) }
	done.expectOrKept("count", 400, concurrency, active)
	check(len(listed(inspector.ListRetryTasks)) == 0, "tasks are tried again")
	waitFor("the last tasks", func() bool { return len(active()) <= concurrency })
	waitFor("the schedule after the kill", func() bool { return done.of("tick")["tick 0"] >= ticks+2 })
}
