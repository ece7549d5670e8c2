// Programs that use Redis from Go, one by its name: each does its job, checks it, and ends with exit status 0 if it was done as promised.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

func main() {
	programs := map[string]func(){"asynq": asynqJobs, "redsync": redsyncLocks, "redis_rate": redisRateLimits}
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", failure, debug.Stack())
			os.Exit(1)
		}
	}()
	programs[os.Args[1]]()
}
