use super::*;

#[test]
fn a_dead_letter_target_that_nothing_declares() {
    let queue = plain("q").dead_letter(to("q.dead"));
    let words = [
        "warned, queue \"q\"",
        "it dead-letters to queue \"q.dead\"",
        "silently",
        "make sure that it exists",
    ];
    finds(&with(&queue), &words);
    fine(&with(&queue).queue(&plain("q.dead")));
    let exists = Declaration::Queue(QueueDeclaration::passive(short("q.dead")));
    fine(&with(&queue).declaration(exists));
    finds(&Topology::new().subscription(&Subscription::new(plain("q")).dead_letter(to("q.dead"))), &words);
}

#[test]
fn a_dead_letter_exchange_that_nothing_declares_or_is_bound_to() {
    let dead = Exchange::new(exchange_name("dead"), ExchangeKind::Direct);
    let queue = plain("q").dead_letter(DeadLetter::to_exchange(exchange_name("dead")).routing_key(key("k")));
    let words = ["warned, queue \"q\"", "to exchange \"dead\" with routing key \"k\""];
    finds(&with(&queue), &words);
    let exchange = with(&queue).exchange(&dead).queue(&plain("graves"));
    finds(&exchange, &words);
    finds(&exchange.clone().binding(bind("dead", "graves", "other")), &words);
    fine(&exchange.binding(bind("dead", "graves", "k")));
    fine(
        &with(&queue).declaration(Declaration::Exchange(ExchangeDeclaration::passive(exchange_name("dead")))),
    );
    fine(&with(&plain("q").dead_letter(DeadLetter::to_exchange(exchange_name("amq.fanout")))));
}

#[test]
fn a_binding_to_an_exchange_that_nothing_declares() {
    let bound = with(&plain("q")).binding(bind("events", "q", "k"));
    finds(
        &bound,
        &["warned, the binding of \"q\" to exchange \"events\"", "the exchange is not declared here", "404"],
    );
    fine(&bound.exchange(&topic("events")));
    fine(&with(&plain("q")).binding(bind("amq.topic", "q", "k")));
    let server_named = PlainQueue::server_named().declaration();
    let server_named =
        Topology::new().declaration(Declaration::Queue(server_named)).binding(bind("x", "", "k"));
    finds(&server_named, &["warned", "the exchange is not declared here"]);
}

#[test]
fn a_binding_of_a_queue_that_nothing_declares() {
    let bound = Topology::new().exchange(&topic("events")).binding(bind("events", "q", "k"));
    finds(
        &bound,
        &["warned, the binding of \"q\" to exchange \"events\"", "what is bound is not declared here"],
    );
    fine(&bound.queue(&plain("q")));
}

#[test]
fn a_binding_to_the_default_exchange() {
    let bound = with(&plain("q")).binding(bind("", "q", "q"));
    finds(&bound, &["refused, the binding of \"q\"", "403", "leave the binding out"]);
    let destination = BindingDestination::Exchange(ExchangeName::DEFAULT);
    let reverse =
        Topology::new().exchange(&topic("x")).binding(Binding { destination, ..bind("x", "", "k") });
    finds(&reverse, &["refused", "default exchange"]);
}

#[test]
fn an_alternate_exchange_that_nothing_declares() {
    let exchange = Topology::new().exchange(&topic("x").alternate(exchange_name("rest")));
    finds(&exchange, &["warned, exchange \"x\"", "alternate exchange \"rest\""]);
    fine(&exchange.exchange(&topic("rest")));
}
