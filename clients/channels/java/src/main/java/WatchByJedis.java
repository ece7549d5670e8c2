import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.exceptions.JedisException;

class WatchByJedis extends JedisPubSub {
    static URI server;
    static long lsn; // of the last emission that is done with: store it with what you did
    long seq;

    @Override public void onSubscribe(String channel, int count) {
        try (Jedis client = new Jedis(server)) {
            String[] args = lsn == 0 ? new String[] {"price", "|", "CHANNEL", "prices"}
                    : new String[] {"price", "|", "CHANNEL", "prices", "RESUME", "" + lsn};
            Object line = client.sendCommand(() -> "GET.WATCH".getBytes(StandardCharsets.UTF_8), args);
            take(new String((byte[]) line, StandardCharsets.UTF_8), true);
        }
    }

    @Override public void onMessage(String channel, String line) {
        take(line, false);
    }

    void take(String line, boolean isAnswer) {
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
        server = URI.create(args[0]);
        for (;;) {
            try (Jedis subscriber = new Jedis(server)) {
                subscriber.subscribe(new WatchByJedis(), "prices");
            } catch (JedisException broken) {
                System.err.println(broken);
                Thread.sleep(100);
            }
        }
    }
}
