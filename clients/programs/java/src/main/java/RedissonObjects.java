import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.api.RateType;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CompositeCodec;
import org.redisson.config.Config;

/**
 * Redisson's map, lock, semaphores, rate limiter and delayed queue: they are for two processes, here two clients, what Java's own
 * are for two threads, and they keep what they hold through a kill of the server.
 */
final class RedissonObjects {
    private static final Codec NUMBERS = new CompositeCodec(StringCodec.INSTANCE, IntegerCodec.INSTANCE);
    private static int number = 0;

    static void run() throws Exception {
        RedissonClient first = client();
        RedissonClient second = client();
        maps(first, second);
        locks(first);
        AtomicInteger most = semaphores(first);
        Job.check(most.get() <= 3, most + " held one of three permits at one time");

        RLock kept = first.getLock("kept");
        kept.lock(60, TimeUnit.SECONDS);
        RSemaphore semaphore = first.getSemaphore("places");
        Job.check(semaphore.trySetPermits(5) && semaphore.tryAcquire(3), "a place is free");
        RRateLimiter limiter = first.getRateLimiter("limit");
        limiter.trySetRate(RateType.OVERALL, 10, Duration.ofHours(1));
        Job.check(limiter.tryAcquire(6), "six of ten");
        RBlockingQueue<Integer> queue = first.getBlockingQueue("queue");
        RDelayedQueue<Integer> delayed = first.getDelayedQueue(queue);
        for (int item = 0; item < 50; item++) {
            delayed.offer(item, 500 + 10 * (item % 7), TimeUnit.MILLISECONDS);
        }
        delayed.offer(-1, 1, TimeUnit.HOURS);

        Job.killServer();
        Job.check(!second.getLock("kept").tryLock(), "the lock was lost with the server");
        Job.check(kept.isHeldByCurrentThread(), "its holder has lost the lock");
        kept.unlock();
        Job.check(second.getLock("kept").tryLock(), "the lock is free");
        RSemaphore places = second.getSemaphore("places");
        Job.check(places.availablePermits() == 2 && !places.tryAcquire(3) && places.tryAcquire(2), "the places were lost with the server");
        RRateLimiter same = second.getRateLimiter("limit");
        Job.check(!same.tryAcquire(5) && same.tryAcquire(4) && !same.tryAcquire(1), "the limit was lost with the server");
        Set<Integer> received = new HashSet<>();
        for (int item = 0; item < 50; item++) {
            Integer found = queue.poll(Job.PATIENCE_SECONDS, TimeUnit.SECONDS);
            Job.check(found != null && received.add(found), found + " came twice or never");
        }
        Job.check(!received.contains(-1) && delayed.size() == 1, "an item came before its time");
        Job.check(second.getMap("map").size() == 400, "the map was lost with the server");
        first.shutdown();
        second.shutdown();
    }

    private static RedissonClient client() {
        Config config = new Config();
        config.useSingleServer().setAddress(Job.URL).setConnectionMinimumIdleSize(2).setRetryAttempts(10);
        return Redisson.create(config);
    }

    private static void maps(RedissonClient first, RedissonClient second) throws Exception {
        RMap<String, Integer> map = first.getMap("map", NUMBERS);
        RMap<String, Integer> same = second.getMap("map", NUMBERS);
        Set<Integer> added = ConcurrentHashMap.newKeySet();
        Job.inThreads(4, () -> {
            for (int key = 0; key < 400; key++) {
                if (map.putIfAbsent("key " + key, key) == null) {
                    Job.check(added.add(key), "two put the same key");
                }
                same.addAndGet("key " + key, 1);
            }
            return null;
        });
        Job.check(added.size() == 400 && map.size() == 400, "each key is put by one thread");
        for (int key = 0; key < 400; key++) {
            Job.check(map.get("key " + key) == key + 4, "increments were lost");
        }
        Job.check(same.replace("key 0", 4, 7) && !map.replace("key 0", 4, 8) && map.get("key 0") == 7, "compare and set");
        RMapCache<String, String> cache = first.getMapCache("cache");
        cache.put("short", "value", 200, TimeUnit.MILLISECONDS);
        cache.put("long", "value", 1, TimeUnit.HOURS);
        Job.waitFor("an entry to end", () -> second.getMapCache("cache").get("short") == null);
        Job.check("value".equals(second.getMapCache("cache").get("long")), "the other entry stays");
    }

    private static void locks(RedissonClient client) throws Exception {
        Job.inThreads(6, () -> {
            for (int round = 0; round < 30; round++) {
                RLock lock = client.getLock("counter");
                lock.lock();
                // Reentrant, as Java's.
                lock.lock();
                int found = number;
                Thread.sleep(1);
                number = found + 1;
                lock.unlock();
                lock.unlock();
            }
            return null;
        });
        Job.check(number == 180, number + ": two held the lock at one time");
        RLock fair = client.getFairLock("fair");
        fair.lock();
        fair.unlock();
        RLock writing = client.getReadWriteLock("book").writeLock();
        writing.lock();
        Job.check(!Job.inThreads(1, () -> client.getReadWriteLock("book").readLock().tryLock()).get(0), "a reader beside a writer");
        writing.unlock();
    }

    private static AtomicInteger semaphores(RedissonClient client) throws Exception {
        AtomicInteger now = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        RSemaphore semaphore = client.getSemaphore("semaphore");
        semaphore.trySetPermits(3);
        Job.inThreads(8, () -> {
            for (int round = 0; round < 20; round++) {
                semaphore.acquire();
                int held = now.incrementAndGet();
                most.accumulateAndGet(held, Math::max);
                Thread.sleep(1);
                now.decrementAndGet();
                semaphore.release();
            }
            return null;
        });
        RPermitExpirableSemaphore leased = client.getPermitExpirableSemaphore("leased");
        leased.trySetPermits(1);
        String permit = leased.acquire(100, TimeUnit.MILLISECONDS);
        String successor = leased.tryAcquire(Job.PATIENCE_SECONDS, 60, TimeUnit.SECONDS);
        Job.check(successor != null && !leased.tryRelease(permit) && leased.tryRelease(successor), "a permit ends with its lease");
        return most;
    }
}
