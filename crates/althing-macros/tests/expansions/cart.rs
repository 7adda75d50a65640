#[actor(name = "shop.cart", version = 2, options = cart_options, derive(Clone, Debug))]
impl Cart {
    /// Lists what is in the cart.
    pub async fn items(&self) -> Vec<Item> {
        self.items.clone()
    }

    /// Puts an item into the cart and returns how many it holds.
    pub async fn add(&mut self, item: Item, ctx: &mut Context<Self>) -> Result<u32, Full> {
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
