//! Exchanges, queues and the routes between them (AMQP 0-9-1, 1.6 and 1.7).
//!
//! Whatever is declared or deleted here is answered: none of the methods is sent `no-wait`, since the server ends
//! the channel over one that fails, and its answers are what an owner of several in flight goes by.

use crate::connection::channel::Reply;
use crate::connection::{ChannelId, CommandError, Connection, DeleteIf};
use crate::text::ShortString;
use crate::topology::{Binding, BindingDestination, ExchangeDeclaration, ExchangeName, QueueDeclaration};
use crate::wire::method;

impl Connection {
    /// Declares an exchange, or checks for it where the declaration is passive. Answered by
    /// [`Event::ExchangeDeclared`](crate::connection::Event::ExchangeDeclared).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`].
    pub fn declare_exchange(
        &mut self,
        channel: ChannelId,
        declaration: &ExchangeDeclaration,
    ) -> Result<(), CommandError> {
        self.ask(channel, Reply::ExchangeDeclare, |number| method::exchange_declare(number, declaration))
    }

    /// Deletes an exchange with its bindings; with `only_if_unused`, where it has none (406 otherwise). Answered
    /// by [`Event::ExchangeDeleted`](crate::connection::Event::ExchangeDeleted), also where there is none of the name.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn delete_exchange(
        &mut self,
        channel: ChannelId,
        name: &ExchangeName,
        only_if_unused: bool,
    ) -> Result<(), CommandError> {
        let encode = |number| Ok(method::exchange_delete(number, name, only_if_unused));
        self.ask(channel, Reply::ExchangeDelete, encode)
    }

    /// Makes a route from an exchange to a queue or to another exchange. Answered by
    /// [`Event::Bound`](crate::connection::Event::Bound), also where the route is there already.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`].
    pub fn bind(&mut self, channel: ChannelId, binding: &Binding) -> Result<(), CommandError> {
        let reply = match binding.destination {
            BindingDestination::Queue(_) => Reply::QueueBind,
            BindingDestination::Exchange(_) => Reply::ExchangeBind,
        };
        self.ask(channel, reply, |number| method::bind(number, binding))
    }

    /// Takes a route away. Answered by [`Event::Unbound`](crate::connection::Event::Unbound), also where there is none.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`].
    pub fn unbind(&mut self, channel: ChannelId, binding: &Binding) -> Result<(), CommandError> {
        let reply = match binding.destination {
            BindingDestination::Queue(_) => Reply::QueueUnbind,
            BindingDestination::Exchange(_) => Reply::ExchangeUnbind,
        };
        self.ask(channel, reply, |number| method::unbind(number, binding))
    }

    /// Declares a queue, or checks for it where the declaration is passive. Always answered, by
    /// [`Event::QueueDeclared`](crate::connection::Event::QueueDeclared), since RabbitMQ renews the lease of an
    /// expiring queue only for a declare that is.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`],
    /// [`CommandError::TooLarge`], [`CommandError::TooDeep`].
    pub fn declare_queue(
        &mut self,
        channel: ChannelId,
        declaration: &QueueDeclaration,
    ) -> Result<(), CommandError> {
        self.ask(channel, Reply::QueueDeclare, |number| method::queue_declare(number, declaration))
    }

    /// Drops what is ready in a queue. What was delivered and not settled stays. Answered by
    /// [`Event::QueuePurged`](crate::connection::Event::QueuePurged).
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn purge_queue(&mut self, channel: ChannelId, name: &ShortString) -> Result<(), CommandError> {
        self.ask(channel, Reply::QueuePurge, |number| Ok(method::queue_purge(number, name)))
    }

    /// Deletes a queue with everything in it, if `only_if` holds (406 otherwise). Answered by
    /// [`Event::QueueDeleted`](crate::connection::Event::QueueDeleted), also where there is none of the name.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotOpen`], [`CommandError::NoSuchChannel`], [`CommandError::TooManyUnanswered`].
    pub fn delete_queue(
        &mut self,
        channel: ChannelId,
        name: &ShortString,
        only_if: DeleteIf,
    ) -> Result<(), CommandError> {
        self.ask(channel, Reply::QueueDelete, |number| Ok(method::queue_delete(number, name, only_if)))
    }
}
