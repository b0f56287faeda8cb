//! Every method that we send, and every answer.

use std::num::NonZeroU16;

use leveret_core::connection::{ChannelClosed, CommandError, ConsumeOptions, DeleteIf, Event, Verdict};
use leveret_core::table::Table;
use leveret_core::text::ShortString;
use leveret_core::topology::{
    Binding, BindingDestination, ExchangeDeclaration, ExchangeKind, ExchangeName, QueueDeclaration,
    RoutingKey,
};
use leveret_testkit::stranger::bare;

use crate::{Client, everywhere, name};

#[test]
fn every_method_is_answered_as_the_documentation_says() {
    everywhere(|broker| {
        let mut client = Client::connect(broker);
        let channel = client.channel();
        macro_rules! answered {
            ($command:expr, $answer:pat) => {{
                $command.expect("it is open");
                client.expect(stringify!($answer), |event| matches!(event, $answer))
            }};
        }
        let exchange = |name: &ShortString| ExchangeName::new(name.as_str()).expect("a good name");
        let (queue, direct, fanout) = (name("live"), exchange(&name("direct")), exchange(&name("fanout")));
        answered!(client.on().update_secret("guest", "a test"), Event::SecretUpdated);
        answered!(client.on().set_flow(channel, true), Event::FlowSet { active: true, .. });

        // Exchanges, queues and bindings, there and back.
        let to_direct = ExchangeDeclaration::durable(direct.clone(), ExchangeKind::Direct);
        let to_fanout = ExchangeDeclaration::durable(fanout.clone(), ExchangeKind::Fanout);
        answered!(client.on().declare_exchange(channel, &to_direct), Event::ExchangeDeclared { .. });
        answered!(client.on().declare_exchange(channel, &to_fanout), Event::ExchangeDeclared { .. });
        let declaration = QueueDeclaration::durable(queue.clone(), Table::new());
        answered!(client.on().declare_queue(channel, &declaration), Event::QueueDeclared { messages: 0, .. });
        let passive = QueueDeclaration::passive(queue.clone());
        answered!(client.on().declare_queue(channel, &passive), Event::QueueDeclared { .. });
        let binding = |destination| Binding {
            source: fanout.clone(),
            destination,
            routing_key: RoutingKey::new("k").expect("a good key"),
            arguments: Table::new(),
        };
        let between = binding(BindingDestination::Exchange(direct.clone()));
        let to_queue =
            Binding { source: direct.clone(), ..binding(BindingDestination::Queue(queue.clone())) };
        answered!(client.on().bind(channel, &between), Event::Bound { .. });
        answered!(client.on().bind(channel, &to_queue), Event::Bound { .. });

        // A message through both exchanges, and one that nobody takes.
        answered!(client.on().confirm_select(channel), Event::ConfirmSelected { .. });
        let mut message = bare("k", "through both");
        message.exchange = fanout.as_short().clone();
        client.on().publish(channel, &message).expect("there is room");
        client.expect("a confirm", |event| matches!(event, Event::Verdict { verdict: Verdict::Ok, .. }));
        answered!(client.on().unbind(channel, &between), Event::Unbound { .. });
        client.on().publish(channel, &message).expect("there is room");
        client.expect("a return", |event| {
            matches!(event, Event::Verdict { verdict: Verdict::Unroutable(why), .. } if why.code == 312)
        });
        answered!(client.on().unbind(channel, &to_queue), Event::Unbound { .. });

        // Taken by a get, each way of settling, and given back by a recover.
        let got = answered!(client.on().get(channel, &queue, false), Event::Got { messages: 0, .. });
        let Event::Got { delivery, .. } = got else { unreachable!("it was waited for") };
        assert_eq!(delivery.content().body().expect("it is small"), "through both");
        assert!(!delivery.redelivered() && delivery.must_settle());
        answered!(client.on().get(channel, &queue, false), Event::GetEmpty { .. });
        client.on().nack(channel, delivery.delivery_tag(), false, true).expect("it is in hand");
        let again = client.on().nack(channel, delivery.delivery_tag(), false, true);
        assert!(matches!(again, Err(CommandError::NotOutstanding { .. })), "twice is refused here");
        answered!(client.on().set_prefetch(channel, NonZeroU16::MIN), Event::PrefetchSet { .. });
        let tag = client.on().consume(channel, &queue, &ShortString::EMPTY, &ConsumeOptions::default());
        let tag = tag.expect("it is open");
        client.expect("a consumer", |event| matches!(event, Event::ConsumeStarted { .. }));
        let delivery = client.delivery();
        assert!(delivery.redelivered() && delivery.consumer_tag() == &tag);
        client.on().reject(channel, delivery.delivery_tag(), true).expect("it is in hand");
        let delivery = client.delivery();
        answered!(client.on().recover(channel), Event::Recovered { .. });
        let late = client.on().ack(channel, delivery.delivery_tag(), false);
        assert!(matches!(late, Err(CommandError::NotOutstanding { .. })), "it was given back");
        let delivery = client.delivery();
        client.on().ack(channel, delivery.delivery_tag(), false).expect("it is in hand");
        answered!(client.on().cancel(channel, &tag), Event::ConsumerCancelled { by_server: false, .. });

        // Transactions on a channel of their own.
        let transactional = client.channel();
        answered!(client.on().tx_select(transactional), Event::TxSelected { .. });
        for commit in [true, false] {
            client.on().publish(transactional, &bare(&queue, "x")).expect("there is room");
            if commit {
                answered!(client.on().tx_commit(transactional), Event::TxCommitted { .. });
            } else {
                answered!(client.on().tx_rollback(transactional), Event::TxRolledBack { .. });
            }
        }
        answered!(client.on().purge_queue(channel, &queue), Event::QueuePurged { messages: 1, .. });

        // The server cancels the consumer of a queue that is deleted.
        let tag = client.on().consume(channel, &queue, &ShortString::EMPTY, &ConsumeOptions::default());
        tag.expect("it is open");
        client.expect("a consumer", |event| matches!(event, Event::ConsumeStarted { .. }));
        let always = DeleteIf::ALWAYS;
        client.on().delete_queue(transactional, &queue, always).expect("it is open");
        let mut told = [client.event(), client.event()].map(|event| match event {
            Event::QueueDeleted { messages: 0, .. } => "deleted",
            Event::ConsumerCancelled { by_server: true, .. } => "cancelled",
            other => panic!("{other:?}"),
        });
        told.sort_unstable();
        assert_eq!(told, ["cancelled", "deleted"]);
        answered!(client.on().delete_exchange(channel, &direct, false), Event::ExchangeDeleted { .. });
        answered!(client.on().delete_exchange(channel, &fanout, true), Event::ExchangeDeleted { .. });

        // A channel that the server closes, one that we close, and the connection.
        answered!(
            client.on().declare_queue(channel, &QueueDeclaration::passive(queue.clone())),
            Event::ChannelClosed { cause: ChannelClosed::Peer(_), .. }
        );
        answered!(
            client.on().close_channel(transactional),
            Event::ChannelClosed { cause: ChannelClosed::Ours, .. }
        );
        client.close();
    });
}
