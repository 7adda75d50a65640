#[allow(clippy::unused_async)]
impl Cart {
    /// Lists what is in the cart.
    pub async fn items(&self) -> Vec<Item> {
        self.items.clone()
    }
    /// Puts an item into the cart and returns how many it holds.
    pub async fn add(
        &mut self,
        item: Item,
        ctx: &mut Context<Self>,
    ) -> Result<u32, Full> {
        self.changed_at = ctx.now();
        self.put(item)
    }
    async fn clear(&mut self) {
        self.items.clear();
    }
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.changed_at = ctx.now();
        Ok(())
    }
    fn put(&mut self, item: Item) -> Result<u32, Full> {
        self.items.push(item);
        u32::try_from(self.items.len()).map_err(|_| Full)
    }
}
impl ::althing::Actor for Cart {
    const NAME: &'static str = "shop.cart";
    const VERSION: u32 = 2;
    fn options() -> ::althing::ActorOptions {
        cart_options()
    }
    fn started(
        &mut self,
        ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), ::althing::ActorError>,
    > + ::core::marker::Send {
        Self::started(self, ctx)
    }
}
/// The messages of `Cart`, one for each call.
#[allow(dead_code, unused_imports)]
pub mod cart_messages {
    use super::*;
    /// What `CartCalls::items` sends.
    #[derive(Clone, Debug)]
    pub struct Items;
    /// What `CartCalls::add` sends.
    #[derive(Clone, Debug)]
    pub struct Add {
        /// The call's `item`.
        pub item: Item,
    }
    /// What `CartCalls::clear` sends.
    #[derive(Clone, Debug)]
    pub(super) struct Clear;
}
impl ::althing::ReadHandler<cart_messages::Items> for Cart {
    type Reply = Vec<Item>;
    fn read(
        &self,
        _message: cart_messages::Items,
        _ctx: &::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.items()
    }
}
impl ::althing::Receives<cart_messages::Items> for Cart {
    type Reply = Vec<Item>;
    type Way = ::althing::Read;
}
impl ::althing::Handler<cart_messages::Add> for Cart {
    type Reply = Result<u32, Full>;
    fn handle(
        &mut self,
        message: cart_messages::Add,
        ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.add(message.item, ctx)
    }
}
impl ::althing::Handler<cart_messages::Clear> for Cart {
    type Reply = ();
    fn handle(
        &mut self,
        _message: cart_messages::Clear,
        _ctx: &mut ::althing::Context<Self>,
    ) -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send {
        self.clear()
    }
}
/// The calls that an `ActorRef<Cart>` takes.
#[allow(dead_code, private_bounds, private_interfaces)]
pub trait CartCalls {
    /// Lists what is in the cart.
    fn items(&self) -> ::althing::Call<'_, Cart, cart_messages::Items, ::althing::Read>;
    /// Puts an item into the cart and returns how many it holds.
    fn add(
        &self,
        item: Item,
    ) -> ::althing::Call<'_, Cart, cart_messages::Add, ::althing::Write>;
    /// Sends `cart_messages::Clear`.
    fn clear(&self) -> ::althing::Call<'_, Cart, cart_messages::Clear, ::althing::Write>;
}
impl CartCalls for ::althing::ActorRef<Cart> {
    fn items(&self) -> ::althing::Call<'_, Cart, cart_messages::Items, ::althing::Read> {
        self.send(cart_messages::Items)
    }
    fn add(
        &self,
        item: Item,
    ) -> ::althing::Call<'_, Cart, cart_messages::Add, ::althing::Write> {
        self.send(cart_messages::Add { item })
    }
    fn clear(
        &self,
    ) -> ::althing::Call<'_, Cart, cart_messages::Clear, ::althing::Write> {
        self.send(cart_messages::Clear)
    }
}
