import io.github.bucket4j.Bandwidth;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.RedisClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import java.time.Duration;

/** Bucket4j: buckets in Redis admit exactly their capacity to many threads of two clients, through a kill of the server. */
final class Bucket4jLimits {
    private static final int CAPACITY = 500;
    private static final int THREADS = 8;

    static void run() throws Exception {
        Bucket first = bucket();
        Bucket second = bucket();
        long before = consumed(first, 20) + consumed(second, 20);
        Job.check(before == 2 * THREADS * 20, before + " admitted");
        Job.killServer();
        long all = before + consumed(first, 40) + consumed(second, 40);
        Job.check(all == CAPACITY, all + " of " + CAPACITY + " admitted");
        Job.check(first.getAvailableTokens() == 0 && !second.tryConsume(1), "the bucket is empty");
        var probe = second.tryConsumeAndReturnRemaining(5);
        Job.check(!probe.isConsumed(), "a token of an empty bucket");
        Job.check(probe.getNanosToWaitForRefill() > Duration.ofMinutes(50).toNanos(), "a token before an hour is over");
        first.addTokens(3);
        Job.check(second.tryConsumeAsMuchAsPossible() == 3, "what one client adds the other consumes");
    }

    private static Bucket bucket() {
        RedisClient client = RedisClient.create(Job.URL);
        RedisCodec<String, byte[]> codec = RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE);
        ProxyManager<String> buckets = Bucket4jLettuce.casBasedBuilder(client.connect(codec))
            .expirationAfterWrite(ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofHours(2)))
            .build();
        var hourly = Bandwidth.builder().capacity(CAPACITY).refillIntervally(CAPACITY, Duration.ofHours(1)).build();
        return buckets.builder().build("bucket", () -> BucketConfiguration.builder().addLimit(hourly).build());
    }

    private static long consumed(Bucket bucket, int requests) throws Exception {
        return Job.inThreads(THREADS, () -> {
            long admitted = 0;
            for (int request = 0; request < requests; request++) {
                admitted += bucket.tryConsume(1) ? 1 : 0;
            }
            return admitted;
        }).stream().mapToLong(Long::longValue).sum();
    }
}
