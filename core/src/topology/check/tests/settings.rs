use std::time::Duration;

use super::*;

fn subscribed(subscription: &Subscription) -> Topology {
    Topology::new().subscription(subscription)
}

fn quorum() -> Subscription {
    Subscription::new(plain("q").quorum())
}

#[test]
fn attempts_of_a_quorum_queue_need_a_place_for_what_is_past_them_and_the_reverse() {
    let dead = plain("q.dead");
    finds(
        &subscribed(&quorum().max_attempts(5)),
        &["refused", "max_attempts is 5 and dead_letter is missing"],
    );
    finds(
        &subscribed(&quorum().dead_letter(to("q.dead"))),
        &["refused", "dead_letter is queue \"q.dead\" and max_attempts is missing", "say how many"],
    );
    fine(&subscribed(&quorum().max_attempts(5).dead_letter(to("q.dead"))).queue(&dead));
    let classic = Subscription::new(plain("q"));
    fine(&subscribed(&classic.clone().max_attempts(5)));
    fine(&subscribed(&classic.dead_letter(to("q.dead"))).queue(&dead));
}

#[test]
fn a_delivery_limit_that_says_something_else_than_the_attempts() {
    let limited = |limit| {
        let queue = plain("q").quorum().delivery_limit(limit);
        subscribed(&Subscription::new(queue).max_attempts(5).dead_letter(to("q.dead")))
            .queue(&plain("q.dead"))
    };
    finds(&limited(5), &["x-delivery-limit is 4 by its max_attempts and 5 by its delivery_limit"]);
    fine(&limited(4));
}

#[test]
fn a_dead_letter_target_of_the_subscription_that_is_not_the_one_of_its_queue() {
    let queue = plain("q").quorum().dead_letter(to("q.graves"));
    finds(
        &subscribed(&Subscription::new(queue).max_attempts(5).dead_letter(to("q.dead")))
            .queue(&plain("q.dead")),
        &["\"q.dead\" by its Subscription::dead_letter and \"q.graves\" by its PlainQueue::dead_letter"],
    );
}

#[test]
fn delays_on_a_queue_that_may_be_gone_when_the_message_comes_back() {
    let delayed = |queue| subscribed(&Subscription::new(queue).delay(Delay::waiting_queue()));
    let exclusive = plain("q").exclusive(true).durable(false);
    finds(&delayed(exclusive.clone()), &["refused", "it has a delay", "exclusive"]);
    finds(&delayed(plain("q").auto_delete(true)), &["refused", "auto-delete"]);
    finds(
        &delayed(PlainQueue::server_named()),
        &["refused, a queue that the server names", "after a reconnect"],
    );
    fine(&delayed(plain("q")));
    fine(&subscribed(&Subscription::new(exclusive)));
}

#[test]
fn a_queue_that_is_its_own_waiting_queue() {
    let itself = Subscription::new(plain("q")).delay(Delay::named(queue_name("q")));
    finds(&subscribed(&itself), &["refused", "delivered at once"]);
    for error in [itself.plan().unwrap_err(), itself.plan_existing().unwrap_err()] {
        assert!(error.to_string().contains("delivered at once"), "{error}");
    }
    fine(&subscribed(&Subscription::new(plain("q")).delay(Delay::named(queue_name("q.later")))));
}

#[test]
fn a_length_limit_on_a_queue_with_delays() {
    let limited = || Subscription::new(plain("q").max_length(10));
    let words = ["refused", "x-max-length is 10 on a queue with delays", "lost without a word"];
    for delay in [Delay::holds(), Delay::waiting_queue(), Delay::delayed_exchange()] {
        finds(&subscribed(&limited().delay(delay)), &words);
    }
    let bytes = Subscription::new(plain("q").max_length_bytes(10)).delay(Delay::holds());
    finds(&subscribed(&bytes), &["refused", "x-max-length-bytes is 10"]);
    let raw_limit = raw("q", &[("x-max-length", 10_i64.into())]);
    finds(&subscribed(&Subscription::new(raw_limit.clone()).delay(Delay::holds())), &words);
    let jobs = Queue::new("q").unwrap().max_priority(0).plan().unwrap();
    let found = texts(&with(&raw_limit).job_queue(&jobs));
    assert!(found.iter().any(|text| text.contains(words[1])), "{found:?}");
    // Without a delay that was asked for there is none.
    fine(&subscribed(&limited()));
    fine(&subscribed(&Subscription::new(raw_limit)));
    fine(&subscribed(&Subscription::new(plain("q")).delay(Delay::holds())));
}

#[test]
fn a_time_to_live_on_a_queue_with_delays() {
    let ttl = Duration::from_secs(60);
    let words =
        ["warned", "x-message-ttl is 60000 on a queue with delays", "not consumed within 60000 ms dies"];
    finds(&subscribed(&Subscription::new(plain("q").message_ttl(ttl))), &words);
    finds(&Topology::new().job_queue(&Queue::new("q").unwrap().message_ttl(ttl).plan().unwrap()), &words);
    fine(&Topology::new().job_queue(&Queue::new("q").unwrap().plan().unwrap()));
}

#[test]
fn retries_are_not_counted_in_a_header_that_a_copy_loses_or_that_means_something_else() {
    let counted = |header: &str| {
        let header = HeaderKey::new(header).unwrap();
        Subscription::new(plain("q")).max_attempts(3).retry_count_header(header)
    };
    for header in
        ["x-delay", "CC", "x-death", "x-opt-a", "x-leveret-mark", "x-deferrals", "amqp-partition-key"]
    {
        finds(
            &subscribed(&counted(header)),
            &["refused", &format!("retry_count_header is {header:?}"), "choose"],
        );
        assert!(counted(header).plan_existing().is_err(), "{header}");
    }
    fine(&subscribed(&counted("x-retries")));
}

#[test]
fn what_is_given_up_does_not_come_back_at_once() {
    let exchange = |name: &str| DeadLetter::to_exchange(exchange_name(name));
    let own_key = DeadLetter::to_exchange(ExchangeName::DEFAULT);
    let fanout = Route::from(Exchange::new(exchange_name("all"), ExchangeKind::Fanout));
    let orders = Route::from(topic("events")).routing_key(key("orders"));
    let subscription = |target: &DeadLetter| {
        let routed = Subscription::new(plain("q")).bind(fanout.clone()).bind(orders.clone());
        routed
            .bind(Route::from_existing(exchange_name("amq.direct")).routing_key(key("q")))
            .dead_letter(target.clone())
    };
    let direct = exchange("amq.direct");
    for target in
        [to("q"), own_key, exchange("all"), exchange("events").routing_key(key("orders")), direct.clone()]
    {
        finds(
            &subscribed(&subscription(&target)),
            &["refused", &format!("dead_letter is {target}"), "comes back at once"],
        );
        assert!(subscription(&target).plan_existing().is_err(), "{target}");
    }
    let quorum = quorum().max_attempts(5).dead_letter(to("q"));
    assert!(texts(&subscribed(&quorum)).iter().any(|text| text.contains("comes back at once")));
    for target in [to("q.dead"), exchange("events").routing_key(key("dead")), direct.routing_key(key("dead"))]
    {
        let found = texts(&subscribed(&subscription(&target)));
        assert!(found.iter().all(|text| text.starts_with("warned")), "{found:?}");
    }
}

#[test]
fn what_is_given_up_does_not_come_back_by_a_pattern() {
    let delayed = Exchange::new(exchange_name("ev"), ExchangeKind::Delayed { routes: DelayedRouting::Topic });
    for source in
        [Route::from(topic("ev")), Route::from(delayed), Route::from_existing(exchange_name("amq.topic"))]
    {
        let exchange = source.declared().map_or("amq.topic", |exchange| exchange.name().as_str()).to_owned();
        let given_up = |pattern: &str, dead: Option<&str>| {
            let target = DeadLetter::to_exchange(exchange_name(&exchange));
            let target = dead.map_or(target.clone(), |dead| target.routing_key(key(dead)));
            let route = source.clone().routing_key(key(pattern));
            Subscription::new(plain("a")).bind(route).max_attempts(2).dead_letter(target)
        };
        for (pattern, dead) in [
            ("#", Some("dead")),
            ("order.#", Some("order.dead")),
            ("order.*", Some("order.dead")),
            ("#", Some("")),
            // Whatever the message's own key is.
            ("#", None),
        ] {
            let subscription = given_up(pattern, dead);
            for error in [subscription.plan().unwrap_err(), subscription.plan_existing().unwrap_err()] {
                assert!(error.to_string().contains("comes back at once"), "{pattern} {dead:?}: {error}");
            }
        }
        for (pattern, dead) in [
            ("order.#", Some("dead")),
            ("order.*", Some("order.a.dead")),
            ("order.#", None),
            ("a#", Some("ab")),
        ] {
            let plan = given_up(pattern, dead).plan();
            assert!(plan.is_ok(), "{pattern} {dead:?}: {plan:?}");
        }
    }
}
