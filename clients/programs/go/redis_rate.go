package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRateLimits asks limits of many keys from many goroutines: each admits exactly its burst, through a kill of the server.
func redisRateLimits() {
	ctx := context.Background()
	limiter := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: address}))
	const keys, clients, burst = 20, 4, 100
	// The next one comes after an hour.
	limit := redis_rate.Limit{Rate: 1, Period: time.Hour, Burst: burst}
	var admitted [keys]atomic.Int64
	ask := func(requests int) {
		var group sync.WaitGroup
		for client := 0; client < keys*clients; client++ {
			group.Add(1)
			go func() {
				defer group.Done()
				key := client % keys
				for request := 0; request < requests; request++ {
					result, err := limiter.Allow(ctx, fmt.Sprintf("client:%d", key), limit)
					must(err)
					admitted[key].Add(int64(result.Allowed))
				}
			}()
		}
		group.Wait()
	}
	ask(15)
	killServer()
	ask(15)
	for key := range admitted {
		check(admitted[key].Load() == burst, "%d of %d requests were admitted for key %d", admitted[key].Load(), burst, key)
	}
	result, err := limiter.AllowAtMost(ctx, "most", limit, burst+20)
	must(err)
	check(result.Allowed == burst && result.Remaining == 0, "at most: %+v", result)
	result, err = limiter.AllowN(ctx, "most", limit, 2)
	must(err)
	check(result.Allowed == 0 && result.RetryAfter > time.Hour-time.Minute, "after the burst: %+v", result)
	must(limiter.Reset(ctx, "most"))
	result, err = limiter.AllowN(ctx, "most", limit, 2)
	must(err)
	check(result.Allowed == 2 && result.Remaining == burst-2, "after a reset: %+v", result)
}
