//! What the console promises over HTTP.

use althing::{Actor, Context, Handler, Node, TopicOptions};
use althing_console::{TopicsView, TreeView, View};
use tokio::net::TcpListener;

struct Worker;
struct Work;

impl Actor for Worker {
    const NAME: &'static str = "test.worker";
}

impl Handler<Work> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Work, _ctx: &mut Context<Self>) {}
}

fn node() -> Node {
    Node::builder("harbour").actor(async |_| Ok(Worker)).build()
}

/// Serves the console on a free port and returns its address.
async fn serve(node: &Node) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let app: axum::Router = althing_console::router(node);
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_works_by_keyboard_and_needs_nothing_from_elsewhere() {
    let origin = serve(&node()).await;
    let html = get(format!("{origin}/console")).await.body_mut().read_to_string().unwrap();
    let tables = html.matches("<table").count();
    assert!(tables >= 7, "{tables}");
    let regions = html.matches(r#"role="region" tabindex="0""#).count();
    assert_eq!(regions, tables, "each table can be scrolled by keyboard");
    let labelled = html.matches("<label>").count();
    assert_eq!(labelled, html.matches("<input").count(), "each field has a label around it");
    let mut sources = vec![html];
    for file in ["console.js", "tables.js", "search.js", "console.css"] {
        let mut answer = get(format!("{origin}/console/{file}")).await;
        sources.push(answer.body_mut().read_to_string().unwrap());
    }
    for source in &sources {
        assert!(!source.contains("http://") && !source.contains("https://"), "{source}");
        assert!(!source.contains("innerHTML"), "what comes from the node is text");
    }
    assert!(sources[4].contains("color-scheme: light dark"));
}

/// Fetches away from the runtime's threads.
async fn get(url: String) -> ureq::http::Response<ureq::Body> {
    let answer = tokio::task::spawn_blocking(move || ureq::get(url).call());
    answer.await.expect("no panic").expect("an answer")
}

async fn view(origin: &str) -> View {
    let mut answer = get(format!("{origin}/console/api")).await;
    answer.body_mut().read_json().expect("the view as JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_view_shows_types_and_the_busiest_actor() {
    let node = node();
    let origin = serve(&node).await;
    for (key, messages) in [("quiet", 1), ("busy", 200)] {
        for _ in 0..messages {
            node.get::<Worker>(key).send(Work).await.unwrap();
        }
    }
    let view = view(&origin).await;
    assert_eq!((view.node.as_str(), view.visited), ("harbour", 2));
    assert_eq!((view.kinds[0].name.as_str(), view.kinds[0].live), ("test.worker", 2));
    assert_eq!(view.kinds[0].handled, 201);
    assert_eq!(view.hot[0].id, "test.worker/busy");
    assert_eq!(view.slow[0].message, "Work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_and_actors_are_found_by_a_part_of_their_names() {
    let node = node();
    let origin = serve(&node).await;
    let topics = ["room:a & b", "room:c"];
    let held = topics.map(|name| node.topic::<u32>(name, TopicOptions::default()));
    held[1].publish(7).unwrap();
    node.get::<Worker>("ada").send(Work).await.unwrap();
    let mut all = get(format!("{origin}/console/api/topics?text=room:&after=")).await;
    let all: TopicsView = all.body_mut().read_json().expect("topics as JSON");
    let names: Vec<_> = all.topics.iter().map(|topic| (topic.name.as_str(), topic.last)).collect();
    assert_eq!((names, all.left), (vec![("room:a & b", 0), ("room:c", 1)], 0));
    let mut one = get(format!("{origin}/console/api/topics?text=a+%26+b")).await;
    let one: TopicsView = one.body_mut().read_json().expect("topics as JSON");
    assert_eq!(one.topics.len(), 1);
    let mut tree = get(format!("{origin}/console/api/tree?text=ada")).await;
    let tree: TreeView = tree.body_mut().read_json().expect("the tree as JSON");
    assert_eq!(tree.actors[0].id, "test.worker/ada");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_brings_no_inline_script_and_a_policy_that_forbids_one() {
    let origin = serve(&node()).await;
    let mut page = get(format!("{origin}/console")).await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let html = page.body_mut().read_to_string().unwrap();
    assert!(!html.contains("<style") && !html.contains("onclick") && !html.contains(" style="));
    for tag in html.split("<script").skip(1) {
        assert!(tag.contains("src=") && tag.contains("></script>"), "inline script: {tag}");
    }
    for file in ["console.js", "tables.js", "search.js", "console.css"] {
        assert_eq!(get(format!("{origin}/console/{file}")).await.status(), 200);
    }
}
