import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ValueOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

class WatchByLettuce {
    static final String SUBSCRIBED = "";
    static long lsn; // of the last emission that is done with: store it with what you did
    static long seq;

    static String watch(RedisCommands<String, String> commands) {
        CommandArgs<String, String> args =
                new CommandArgs<>(StringCodec.UTF8).add("price").add("|").add("CHANNEL").add("prices");
        if (lsn > 0) args.add("RESUME").add(lsn);
        return commands.dispatch(new GetWatch(), new ValueOutput<>(StringCodec.UTF8), args);
    }

    static class GetWatch implements ProtocolKeyword {
        @Override public byte[] getBytes() {
            return toString().getBytes(StandardCharsets.UTF_8);
        }

        @Override public String toString() {
            return "GET.WATCH";
        }
    }

    static void take(String line, boolean isAnswer) {
        JsonObject emission = JsonParser.parseString(line).getAsJsonObject();
        if (emission.has("error")) throw new IllegalStateException(line);
        long number = emission.get("seq").getAsLong();
        if (isAnswer && !emission.has("value")) {
            seq = number; // emissions after it follow
        } else if (isAnswer || number == seq + 1 || emission.has("reason")) {
            lsn = emission.get("lsn").getAsLong();
            seq = number;
            System.out.println(lsn + " " + seq + " " + emission.get("value")); // what you do with it
        }
    }

    public static void main(String[] args) throws InterruptedException {
        RedisClient client = RedisClient.create(args[0]);
        RedisCommands<String, String> commands = client.connect().sync();
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        StatefulRedisPubSubConnection<String, String> subscriber = client.connectPubSub();
        subscriber.addListener(new RedisPubSubAdapter<String, String>() {
            @Override public void subscribed(String channel, long count) { // also after a broken connection
                events.add(SUBSCRIBED);
            }

            @Override public void message(String channel, String line) {
                events.add(line);
            }
        });
        subscriber.sync().subscribe("prices");
        for (;;) {
            String event = events.take();
            try {
                boolean hasSubscribed = event.equals(SUBSCRIBED);
                take(hasSubscribed ? watch(commands) : event, hasSubscribed);
            } catch (RedisException broken) {
                System.err.println(broken);
                Thread.sleep(100);
                events.add(SUBSCRIBED);
            }
        }
    }
}
