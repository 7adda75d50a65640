#[actor(name = "shop.cart", wire)]
impl<T: Item> Cart<T> {
    pub async fn add(&mut self, item: T, count: u32) -> Result<u32, Full> {
        self.put(item, count)
    }

    #[wire(name = "list")]
    pub async fn items(&self) -> Vec<T> {
        self.items.clone()
    }

    #[wire(skip)]
    async fn audit(&self, auditor: ActorRef<Auditor>) {
        auditor.look(self.items.len()).try_tell().ok();
    }
}
