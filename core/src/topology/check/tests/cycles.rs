use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A queue whose messages expire into another.
fn expires(name: &str, target: &str) -> PlainQueue {
    plain(name).message_ttl(SECOND).dead_letter(to(target))
}

#[test]
fn messages_that_expire_in_a_circle() {
    let circle = with(&expires("work", "wait")).queue(&expires("wait", "work"));
    finds(
        &circle,
        &[
            "refused, queue \"work\"",
            "messages that die by themselves come around: \"work\" -> \"wait\" -> \"work\"",
            "the broker drops such a message",
            "let a consumer reject",
        ],
    );
}

#[test]
fn a_rejection_on_the_way_breaks_the_circle() {
    let rejects = plain("work").dead_letter(to("wait"));
    fine(&with(&rejects).queue(&expires("wait", "work")));
    let refuses_when_full =
        plain("work").dead_letter(to("wait")).max_length(9).overflow(Overflow::RejectPublish);
    fine(&with(&refuses_when_full).queue(&expires("wait", "work")));
}

#[test]
fn a_full_queue_and_a_used_up_message_die_by_themselves_too() {
    let full = plain("work").dead_letter(to("wait")).max_length(9);
    finds(&with(&full).queue(&expires("wait", "work")), &["refused", "come around"]);
    let refused_and_buried = full.overflow(Overflow::RejectPublishDlx);
    finds(&with(&refused_and_buried).queue(&expires("wait", "work")), &["refused", "come around"]);
    let used_up = plain("work").quorum().delivery_limit(3).dead_letter(to("wait"));
    finds(&with(&used_up).queue(&expires("wait", "work")), &["refused", "come around"]);
    // From RabbitMQ 4.0 on it has a limit without saying so.
    let unlimited = plain("work").quorum().dead_letter(to("wait"));
    finds(&with(&unlimited).queue(&expires("wait", "work")), &["warned", "can come around"]);
}

#[test]
fn a_queue_that_expires_into_itself() {
    finds(&with(&expires("q", "q")), &["refused", "\"q\" -> \"q\""]);
    // With the message's own routing key, which is the queue's name if it came through the default exchange.
    let own_key = plain("q").message_ttl(SECOND).dead_letter(DeadLetter::to_exchange(ExchangeName::DEFAULT));
    finds(&with(&own_key), &["warned", "\"q\" -> \"q\""]);
}

#[test]
fn a_way_through_exchanges_is_followed_by_their_kind() {
    let through = |kind: ExchangeKind, dead_key: &str, bound_key: &str| {
        let target = DeadLetter::to_exchange(exchange_name("x")).routing_key(key(dead_key));
        with(&plain("q").message_ttl(SECOND).dead_letter(target))
            .queue(&plain("elsewhere"))
            .exchange(&Exchange::new(exchange_name("x"), kind))
            .binding(bind("x", "q", bound_key))
            .binding(bind("x", "elsewhere", dead_key))
    };
    let certain = ["refused", "\"q\" -> \"q\""];
    finds(&through(ExchangeKind::Direct, "a.b", "a.b"), &certain);
    fine(&through(ExchangeKind::Direct, "a.b", "a.*"));
    finds(&through(ExchangeKind::Topic, "a.b", "a.*"), &certain);
    fine(&through(ExchangeKind::Topic, "a.b", "b.*"));
    finds(&through(ExchangeKind::Fanout, "a", "b"), &certain);
    finds(&through(ExchangeKind::Delayed { routes: DelayedRouting::Fanout }, "a", "b"), &certain);
    let possible = ["warned", "depending on their keys", "\"q\" -> \"q\""];
    finds(&through(ExchangeKind::Headers, "a", "b"), &possible);
    finds(&through(ExchangeKind::ConsistentHash, "2", "1"), &possible);
    finds(&through(ExchangeKind::Custom(short("x-random")), "a", "b"), &possible);
}

#[test]
fn a_message_that_keeps_its_routing_key_may_come_around() {
    let target = DeadLetter::to_exchange(exchange_name("x"));
    let topology = with(&plain("q").message_ttl(SECOND).dead_letter(target)).binding(bind("x", "q", "a"));
    let direct = Exchange::new(exchange_name("x"), ExchangeKind::Direct);
    finds(&topology.clone().exchange(&direct), &["warned", "can come around"]);
    let fanout = Exchange::new(exchange_name("x"), ExchangeKind::Fanout);
    finds(&topology.exchange(&fanout), &["refused", "come around"]);
}

#[test]
fn a_way_through_an_alternate_exchange_is_followed() {
    let rest = Exchange::new(exchange_name("rest"), ExchangeKind::Fanout);
    let target = DeadLetter::to_exchange(exchange_name("x")).routing_key(key("k"));
    let topology = with(&plain("q").message_ttl(SECOND).dead_letter(target))
        .queue(&plain("graves"))
        .exchange(&topic("x").alternate(exchange_name("rest")))
        .exchange(&rest)
        .binding(bind("rest", "q", ""));
    finds(&topology, &["refused", "\"q\" -> \"q\""]);
    fine(&topology.binding(bind("x", "graves", "#")));
}

#[test]
fn exchanges_that_are_bound_in_a_circle_are_no_circle_of_dead_letters() {
    let between = |source: &str, destination: &str| Binding {
        destination: BindingDestination::Exchange(exchange_name(destination)),
        ..bind(source, "", "#")
    };
    let target = DeadLetter::to_exchange(exchange_name("a")).routing_key(key("k"));
    let circle = with(&plain("q").message_ttl(SECOND).dead_letter(target))
        .queue(&plain("graves"))
        .exchange(&topic("a"))
        .exchange(&topic("b"))
        .binding(between("a", "b"))
        .binding(between("b", "a"))
        .binding(bind("b", "graves", "#"));
    fine(&circle);
    finds(&circle.binding(bind("b", "q", "#")), &["refused", "\"q\" -> \"q\""]);
}

#[test]
fn a_waiting_queue_is_left_by_the_expiration_of_each_message() {
    let waits = Subscription::new(plain("q")).delay(Delay::waiting_queue());
    fine(&Topology::new().subscription(&waits));
    let full = plain("q").max_length(9).dead_letter(to("q.retry"));
    let back = Subscription::new(full).delay(Delay::waiting_queue());
    let found = texts(&Topology::new().subscription(&back));
    assert!(found.iter().any(|text| text.contains("\"q\" -> \"q.retry\" -> \"q\"")), "{found:?}");
}

#[test]
fn a_queue_that_the_server_names_can_be_on_the_way_too() {
    let dead = DeadLetter::to_exchange(exchange_name("x"));
    let subscription =
        |queue| Subscription::new(queue).bind(Exchange::new(exchange_name("x"), ExchangeKind::Fanout));
    let stays = subscription(PlainQueue::server_named().message_ttl(SECOND));
    // Its being bound to the exchange is a target for the dead letters of others.
    let other = plain("q").dead_letter(dead.clone());
    fine(&Topology::new().subscription(&stays).queue(&other));
    let comes_around = subscription(PlainQueue::server_named().message_ttl(SECOND).dead_letter(dead));
    let topology = Topology::new().subscription(&stays).subscription(&comes_around);
    finds(&topology, &["a queue that the server names -> a queue that the server names"]);
}

#[test]
fn every_circle_is_told_once_however_many_there_are() {
    let mut topology = Topology::new();
    for pair in 0..100 {
        let (one, other) = (format!("a{pair}"), format!("b{pair}"));
        topology = topology.queue(&expires(&one, &other)).queue(&expires(&other, &one));
    }
    let found = topology.check();
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|finding| matches!(&finding.problem,
        Problem::DeadLetterCycle { queues, certain: true } if queues.len() == 2)));
}
