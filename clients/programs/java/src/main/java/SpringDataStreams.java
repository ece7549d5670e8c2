import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.data.domain.Range;
import org.springframework.data.redis.connection.Limit;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.RecordId;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.connection.stream.StreamReadOptions;
import org.springframework.data.redis.connection.stream.StreamRecords;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamMessageListenerContainerOptions;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamReadRequest;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;

/**
 * Spring Data's streams: listeners in a group receive each order once and acknowledge it; what one of them took and left is claimed by
 * another; all this through a kill of the server.
 */
final class SpringDataStreams {
    private static final String STREAM = "orders";
    private static final String GROUP = "shop";
    private static final Map<String, Integer> RECEIVED = new ConcurrentHashMap<>();

    static void run() throws Exception {
        var factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", Job.PORT));
        factory.afterPropertiesSet();
        factory.start();
        var redis = new StringRedisTemplate(factory);
        var streams = redis.<String, String>opsForStream();
        add(redis, 0, 50);
        streams.createGroup(STREAM, ReadOffset.from("0"), GROUP);

        // One consumer takes ten orders and is not heard of again.
        var taken = streams.read(Consumer.from(GROUP, "lost"),
            StreamReadOptions.empty().count(10),
            StreamOffset.create(STREAM, ReadOffset.lastConsumed()));
        Job.check(taken.size() == 10 && streams.pending(STREAM, GROUP).getTotalPendingMessages() == 10, "ten are pending");

        var options = StreamMessageListenerContainerOptions.builder().pollTimeout(Duration.ofMillis(100)).batchSize(5).build();
        var container = StreamMessageListenerContainer.create(factory, options);
        for (String name : new String[] {"ann", "bob"}) {
            // A broken connection does not end the subscription.
            var request = StreamReadRequest.builder(StreamOffset.create(STREAM, ReadOffset.lastConsumed()))
                .consumer(Consumer.from(GROUP, name)).autoAcknowledge(false).cancelOnError(error -> false).build();
            container.register(request, record -> handle(redis, record));
        }
        container.start();
        add(redis, 50, 300);
        Job.waitFor("some of the orders", () -> RECEIVED.size() >= 100);
        Job.killServer();
        Job.waitFor("the client to be back", () -> {
            try {
                return streams.size(STREAM) == 300;
            } catch (RuntimeException away) {
                return false;
            }
        });
        add(redis, 300, 400);

        // What was taken and not acknowledged is claimed: what the lost consumer had, and what was in hand at the kill.
        Job.waitFor("all orders", () -> {
            var pending = streams.pending(STREAM, GROUP, Range.unbounded(), 100, Duration.ofMillis(500));
            RecordId[] ids = pending.stream().map(message -> message.getId()).toArray(RecordId[]::new);
            if (ids.length > 0) {
                streams.claim(STREAM, GROUP, "carl", Duration.ofMillis(500), ids).forEach(record -> handle(redis, record));
            }
            return RECEIVED.size() >= 400 && streams.pending(STREAM, GROUP).getTotalPendingMessages() == 0;
        });
        Job.check(RECEIVED.size() == 400, RECEIVED.size() + " orders");
        long repeated = RECEIVED.values().stream().filter(count -> count > 1).count();
        // At the kill each of two listeners has a batch of five.
        Job.check(repeated <= 10, repeated + " orders were handled more than once");
        container.stop();

        var info = streams.info(STREAM);
        Job.check(info.streamLength() == 400 && info.groupCount() == 1, "the stream: " + info);
        Job.check(streams.consumers(STREAM, GROUP).size() == 4, "four consumers");
        var last = streams.reverseRange(STREAM, Range.unbounded(), Limit.limit().count(1));
        Job.check("order 399".equals(last.get(0).getValue().get("name")), "the last order is " + last);
        Job.check(streams.trim(STREAM, 100) == 300 && streams.size(STREAM) == 100, "trimmed");
    }

    private static void add(StringRedisTemplate redis, int from, int to) {
        for (int order = from; order < to; order++) {
            redis.opsForStream().add(StreamRecords.mapBacked(Map.of("name", "order " + order)).withStreamKey(STREAM));
        }
    }

    private static void handle(StringRedisTemplate redis, MapRecord<String, ?, ?> record) {
        RECEIVED.merge((String) record.getValue().get("name"), 1, Integer::sum);
        redis.opsForStream().acknowledge(GROUP, record);
    }
}
