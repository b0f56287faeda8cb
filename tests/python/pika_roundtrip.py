"""What pika, the usual Python client, does with the broker: python3 pika_roundtrip.py amqp://host:port"""

import sys

import pika
from pika.exceptions import ChannelClosedByBroker, ProbableAuthenticationError, UnroutableError


def collect(channel, queue, count):
    """Consumes and acknowledges until `count` messages came."""
    found = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=10):
        if method is None:
            break
        found.append((method, properties, body))
        channel.basic_ack(method.delivery_tag)
        if len(found) == count:
            break
    channel.cancel()
    return found


def publish_and_consume(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=2)
    channel.queue_declare("pika.work", durable=True, arguments={"x-max-priority": 10})
    bodies = [b"", b"small", b"x" * 300_000]
    for number, body in enumerate(bodies):
        properties = pika.BasicProperties(message_id=str(number), delivery_mode=2, headers={"n": number})
        channel.basic_publish("", "pika.work", body, properties, mandatory=True)
    found = collect(channel, "pika.work", len(bodies))
    assert [body for _, _, body in found] == bodies
    assert [properties.message_id for _, properties, _ in found] == ["0", "1", "2"]
    assert [properties.headers for _, properties, _ in found] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert not any(method.redelivered for method, _, _ in found)
    assert channel.queue_declare("pika.work", passive=True).method.message_count == 0
    channel.close()


def unroutable(connection):
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        channel.basic_publish("", "pika.missing", b"job", mandatory=True)
    except UnroutableError as error:
        assert error.messages[0].method.reply_code == 312
        assert error.messages[0].body == b"job"
    else:
        raise AssertionError("a message to a missing queue was confirmed")
    channel.close()


def inequivalent(connection):
    channel = connection.channel()
    try:
        channel.queue_declare("pika.work", durable=True, arguments={"x-max-priority": 5})
    except ChannelClosedByBroker as error:
        assert error.reply_code == 406, error
        assert "inequivalent arg 'x-max-priority'" in error.reply_text, error
        assert "received '5' but current is '10'" in error.reply_text, error
    else:
        raise AssertionError("another x-max-priority was accepted")


def expired(connection):
    channel = connection.channel()
    channel.queue_declare("pika.dead", durable=True)
    arguments = {
        "x-message-ttl": 50,
        "x-expires": 60_000,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "pika.dead",
    }
    channel.queue_declare("pika.hold", durable=True, arguments=arguments)
    channel.basic_publish("", "pika.hold", b"late", pika.BasicProperties(expiration="40"))
    [(_, properties, body)] = collect(channel, "pika.dead", 1)
    assert body == b"late"
    assert properties.expiration is None
    [death] = properties.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("expired", "pika.hold", 1), death
    assert death["original-expiration"] == "40" and death["routing-keys"] == ["pika.hold"], death
    assert death["time"].year >= 2024, death
    channel.close()


def redelivered(parameters, connection):
    channel = connection.channel()
    channel.queue_declare("pika.again")
    channel.basic_publish("", "pika.again", b"job")
    other = pika.BlockingConnection(parameters)
    method, _, _ = other.channel().basic_get("pika.again")
    assert method and not method.redelivered
    other.close()
    method, _, body = channel.basic_get("pika.again", auto_ack=True)
    assert method.redelivered and body == b"job"
    channel.close()


def topics(connection):
    channel = connection.channel()
    channel.exchange_declare("pika.events", exchange_type="topic", auto_delete=True)
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "pika.events", "user.#")
    for key in ["user.created", "order.created", "user.name.changed"]:
        channel.basic_publish("pika.events", key, key.encode())
    found = [body for _, _, body in collect(channel, queue, 2)]
    assert found == [b"user.created", b"user.name.changed"], found
    channel.queue_delete(queue)
    channel.close()


def wrong_password(parameters):
    wrong = pika.ConnectionParameters(
        parameters.host, parameters.port, credentials=pika.PlainCredentials("guest", "wrong")
    )
    try:
        pika.BlockingConnection(wrong)
    except ProbableAuthenticationError:
        return
    raise AssertionError("a wrong password was accepted")


def main():
    parameters = pika.URLParameters(sys.argv[1])
    connection = pika.BlockingConnection(parameters)
    publish_and_consume(connection)
    unroutable(connection)
    inequivalent(connection)
    expired(connection)
    redelivered(parameters, connection)
    topics(connection)
    connection.close()
    wrong_password(parameters)
    print(f"pika {pika.__version__}: ok")


main()
