use althing::actor;

struct Cart;

#[actor(name = "cart")]
impl Cart {
    async fn add(&mut self, name: &str, tags: Vec<&'static str>) {
        let _ = (name, tags);
    }
}

fn main() {}
