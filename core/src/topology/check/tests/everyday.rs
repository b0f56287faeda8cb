//! What people run every day. Nothing of it is worth a word.

use std::time::Duration;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn jobs(queue: &Queue) -> Topology {
    Topology::new().job_queue(&queue.plan().unwrap())
}

fn subscribed(subscription: &Subscription) -> Topology {
    subscription.plan().unwrap();
    Topology::new().subscription(subscription)
}

fn exchange(name: &str, kind: ExchangeKind) -> Exchange {
    Exchange::new(exchange_name(name), kind)
}

fn topic_route(pattern: &str) -> Route {
    Route::from(topic("events")).routing_key(key(pattern))
}

#[test]
fn job_queues_of_every_make_with_retries_and_dead_letters() {
    let queue = |name| Queue::new(name).unwrap().retry(crate::retry::RetryPolicy::exponential(8));
    let listed = [Duration::from_secs(7)];
    let all = jobs(&queue("emails"))
        .job_queue(&queue("emails.urgent").max_priority(0).coarse_delays(true).plan().unwrap())
        .job_queue(&queue("payments").quorum().delivery_limit(5).plan().unwrap())
        .job_queue(&queue("invoices").replicated_holds(listed).plan().unwrap())
        .job_queue(&queue("reports").quorum().expiring_holds().dead_letters(false).plan().unwrap());
    fine(&all);
    // Jobs that somebody publishes through an exchange, and dead letters that somebody reads.
    let fed = all.exchange(&topic("events")).binding(bind("events", "emails", "user.created"));
    fine(&fed.subscription(&Subscription::new(plain("emails.dead"))));
    let dead = plain("payments.dead").quorum().delivery_limit(2_147_483_647);
    fine(&jobs(&queue("payments").quorum()).subscription(&Subscription::new(dead)));
}

#[test]
fn a_topic_exchange_with_subscriptions_of_every_delay() {
    for delay in [Delay::holds(), Delay::waiting_queue(), Delay::named(queue_name("later"))] {
        for queue in [plain("orders"), plain("orders").quorum()] {
            let orders = Subscription::new(queue).bind(topic_route("order.#")).delay(delay.clone());
            let audit = Subscription::new(plain("audit").max_length(10_000)).bind(topic_route("#"));
            fine(&subscribed(&orders).subscription(&audit));
        }
    }
    let delayed = Subscription::new(plain("orders")).delay(Delay::delayed_exchange());
    fine(&subscribed(&delayed.bind(topic_route("order.*"))));
}

#[test]
fn attempts_that_are_limited_and_dead_letters_that_are_kept() {
    for (queue, dead) in
        [(plain("orders"), plain("orders.dead")), (plain("orders").quorum(), plain("orders.dead").quorum())]
    {
        let orders = Subscription::new(queue).max_attempts(5).dead_letter(to("orders.dead"));
        fine(&subscribed(&orders.clone().bind(topic_route("order.#"))).queue(&dead));
        // One place for the dead letters of all.
        let all = DeadLetter::to_exchange(exchange_name("dead"));
        let orders = orders.dead_letter(all);
        let place = exchange("dead", ExchangeKind::Fanout);
        fine(&subscribed(&orders).exchange(&place).queue(&dead.message_ttl(24 * HOUR)).binding(bind(
            "dead",
            "orders.dead",
            "",
        )));
    }
}

#[test]
fn messages_that_a_consumer_rejects_into_a_queue_where_they_wait() {
    let waits = plain("orders.wait").message_ttl(Duration::from_secs(30)).dead_letter(to("orders"));
    fine(&with(&plain("orders").dead_letter(to("orders.wait"))).queue(&waits));
}

#[test]
fn a_consistent_hash_over_queues_with_one_consumer_each() {
    let mut topology = Topology::new();
    for at in 0..8 {
        let queue = plain(&format!("orders.{at}")).quorum().single_active_consumer(true);
        let hash = Route::from(exchange("orders", ExchangeKind::ConsistentHash)).routing_key(key("1"));
        let subscription = Subscription::new(queue).bind(hash).lanes(4);
        topology = topology.subscription(
            &subscription.max_attempts(5).dead_letter(DeadLetter::to_exchange(exchange_name("dead"))),
        );
    }
    let dead = exchange("dead", ExchangeKind::Direct);
    topology = topology.exchange(&dead).queue(&plain("orders.dead").quorum());
    fine(&topology.binding(bind("dead", "orders.dead", "orders")));
}

#[test]
fn what_no_route_takes_goes_to_an_alternate_exchange() {
    let events = topic("events").alternate(exchange_name("unrouted"));
    let orders = Subscription::new(plain("orders")).bind(Route::from(events).routing_key(key("order.#")));
    let unrouted = exchange("unrouted", ExchangeKind::Fanout);
    let rest = plain("unrouted").max_length(100_000).overflow(Overflow::DropHead);
    fine(&subscribed(&orders).exchange(&unrouted).queue(&rest).binding(bind("unrouted", "unrouted", "")));
}

#[test]
fn exchanges_of_the_broker_and_of_another_service() {
    for source in ["amq.topic", "billing.events"] {
        let route = Route::from_existing(exchange_name(source)).routing_key(key("invoice.*"));
        for queue in [plain("invoices"), plain("invoices").quorum(), PlainQueue::server_named()] {
            fine(&subscribed(&Subscription::new(queue).bind(route.clone())));
        }
    }
    let others = Declaration::Queue(QueueDeclaration::passive(short("billing.dead")));
    let dead = Subscription::new(plain("invoices")).dead_letter(to("billing.dead"));
    fine(&subscribed(&dead).declaration(others));
}

#[test]
fn queues_of_one_process_each() {
    let news = || Route::from(exchange("news", ExchangeKind::Fanout));
    let mut topology = subscribed(&Subscription::new(PlainQueue::server_named()).bind(news()));
    for name in ["cache.host-1", "cache.host-2"] {
        let queue = plain(name).durable(false).exclusive(true).message_ttl(HOUR);
        topology = topology.subscription(&Subscription::new(queue).bind(news()));
    }
    fine(&topology.queue(&plain("visits.host-1").expires(HOUR)));
}
