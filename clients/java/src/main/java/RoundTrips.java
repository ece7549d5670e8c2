import java.net.URI;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.timeseries.AggregationType;
import redis.clients.jedis.timeseries.TSCreateParams;
import redis.clients.jedis.timeseries.TSElement;
import redis.clients.jedis.timeseries.TSRangeParams;

/**
 * Every type of value with Jedis. Empties database 15 first.
 *
 * <p>{@code mvn -q compile exec:java -Dexec.args=redis://127.0.0.1:7379/15}
 */
public final class RoundTrips {
    private interface Example {
        void run(Jedis client) throws Exception;
    }

    private static URI url = URI.create("redis://127.0.0.1:7379/15");

    private static void check(Object got, Object expected) {
        if (!Objects.equals(got, expected)) {
            throw new AssertionError("got " + got + ", expected " + expected);
        }
    }

    private static void strings(Jedis client) {
        check(client.set("greeting", "hello", SetParams.setParams().ex(100)), "OK");
        check(client.get("greeting"), "hello");
        check(client.get("missing"), null);
        check(client.incrBy("visits", 42), 42L);
        check(client.append("greeting", "!"), 6L);
    }

    private static void hashes(Jedis client) {
        check(client.hset("user", Map.of("name", "ada", "visits", "1")), 2L);
        check(client.hincrBy("user", "visits", 2), 3L);
        check(client.hgetAll("user"), Map.of("name", "ada", "visits", "3"));
    }

    private static void lists(Jedis client) {
        check(client.rpush("queue", "a", "b", "c"), 3L);
        check(client.lmove("queue", "done", ListDirection.LEFT, ListDirection.RIGHT), "a");
        check(client.lrange("queue", 0, -1), List.of("b", "c"));
    }

    private static void aBlockingPopWaitsForAPush(Jedis client) throws Exception {
        CompletableFuture<List<String>> popped = CompletableFuture.supplyAsync(() -> {
            try (Jedis waiter = new Jedis(url)) {
                return waiter.blpop(30, "jobs", "more jobs");
            }
        });
        client.rpush("jobs", "job");
        check(popped.get(30, TimeUnit.SECONDS), List.of("jobs", "job"));
    }

    private static void sets(Jedis client) {
        client.sadd("odd", "1", "3", "5");
        client.sadd("small", "1", "2", "3");
        check(client.sinter("odd", "small"), Set.of("1", "3"));
    }

    private static void sortedSets(Jedis client) {
        check(client.zadd("board", Map.of("ada", 12.5, "bob", 9.0)), 2L);
        check(client.zincrby("board", 10, "bob"), 19.0);
        check(client.zrange("board", 0, -1), List.of("ada", "bob"));
        check(client.zscore("board", "ada"), 12.5);
    }

    private static void timeSeries(Jedis client) {
        String key = "temperature:hall";
        try (JedisPooled series = new JedisPooled(url)) {
            check(series.tsCreate(key, TSCreateParams.createParams().label("kind", "temperature")), "OK");
            check(series.tsAdd(key, 1000, 20.5), 1000L);
            check(series.tsMAdd(Map.entry(key, new TSElement(2000, 21.5)), Map.entry(key, new TSElement(61000, 19))),
                    List.of(2000L, 61000L));
            check(series.tsGet(key), new TSElement(61000, 19));
            check(series.tsRange(key, TSRangeParams.rangeParams().aggregation(AggregationType.AVG, 60_000)),
                    List.of(new TSElement(0, 21), new TSElement(60_000, 19)));
            check(series.tsQueryIndex("kind=~temp.*"), List.of(key));
        }
    }

    private static void aTransactionFailsWhenAWatchedKeyHasChanged(Jedis client) {
        try (Jedis other = new Jedis(url)) {
            client.watch("balance");
            other.set("balance", "20");
        }
        Transaction late = client.multi();
        late.set("balance", "1");
        check(late.exec(), null);
        check(client.get("balance"), "20");
        Transaction transaction = client.multi();
        transaction.set("x", "1");
        transaction.incr("x");
        check(transaction.exec(), List.of("OK", 2L));
    }

    private static void aPipelineAnswersInOrder(Jedis client) {
        Pipeline pipeline = client.pipelined();
        Map<Long, Response<Long>> answers = new LinkedHashMap<>();
        for (long number = 1; number <= 1000; number++) {
            answers.put(number, pipeline.incr("counter"));
        }
        pipeline.sync();
        answers.forEach((expected, answer) -> check(answer.get(), expected));
    }

    private static void aScanFindsEveryKey(Jedis client) {
        for (int number = 0; number < 500; number++) {
            client.set("scan:" + number, "1");
        }
        Set<String> found = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = client.scan(cursor, new ScanParams().match("scan:*").count(50));
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        check(found.size(), 500);
    }

    private static void messagesReachPatterns(Jedis client) throws Exception {
        CountDownLatch subscribed = new CountDownLatch(1);
        CompletableFuture<String> heard = new CompletableFuture<>();
        JedisPubSub listener = new JedisPubSub() {
            @Override
            public void onPSubscribe(String pattern, int count) {
                subscribed.countDown();
            }

            @Override
            public void onPMessage(String pattern, String channel, String message) {
                heard.complete(channel + " " + message);
                punsubscribe();
            }
        };
        CompletableFuture<Void> subscriber = CompletableFuture.runAsync(() -> {
            try (Jedis connection = new Jedis(url)) {
                connection.psubscribe(listener, "weather.*");
            }
        });
        check(subscribed.await(30, TimeUnit.SECONDS), true);
        check(client.publish("weather.oslo", "snow"), 1L);
        check(heard.get(30, TimeUnit.SECONDS), "weather.oslo snow");
        subscriber.get(30, TimeUnit.SECONDS);
    }

    private static void anExpiredKeyIsGone(Jedis client) {
        client.psetex("short", 1, "lived");
        while (client.exists("short")) {
            Thread.onSpinWait();
        }
        check(client.ttl("short"), -2L);
    }

    private static Map<String, Example> examples() {
        Map<String, Example> examples = new LinkedHashMap<>();
        examples.put("strings", RoundTrips::strings);
        examples.put("hashes", RoundTrips::hashes);
        examples.put("lists", RoundTrips::lists);
        examples.put("a blocking pop waits for a push", RoundTrips::aBlockingPopWaitsForAPush);
        examples.put("sets", RoundTrips::sets);
        examples.put("sorted sets", RoundTrips::sortedSets);
        examples.put("time series", RoundTrips::timeSeries);
        examples.put("a late transaction fails", RoundTrips::aTransactionFailsWhenAWatchedKeyHasChanged);
        examples.put("a pipeline answers in order", RoundTrips::aPipelineAnswersInOrder);
        examples.put("a scan finds every key", RoundTrips::aScanFindsEveryKey);
        examples.put("messages reach patterns", RoundTrips::messagesReachPatterns);
        examples.put("an expired key is gone", RoundTrips::anExpiredKeyIsGone);
        return examples;
    }

    public static void main(String[] arguments) {
        String address = arguments.length > 0 ? arguments[0] : url.toString();
        int passed = 0;
        int failed = 0;
        for (int protocol : new int[] {2, 3}) {
            url = URI.create(address + "?protocol=" + protocol);
            try (Jedis client = new Jedis(url)) {
                client.flushDB();
                for (Map.Entry<String, Example> example : examples().entrySet()) {
                    try {
                        example.getValue().run(client);
                        passed++;
                    } catch (Exception | AssertionError error) {
                        failed++;
                        System.out.println("FAILED " + example.getKey() + " (RESP" + protocol + "): " + error);
                    }
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
