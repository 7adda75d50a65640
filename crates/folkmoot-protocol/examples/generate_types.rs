//! Writes `web/src/protocol/generated/*.ts` from the types of this crate. With `--check` it writes
//! nothing and fails when a file differs from what it would write. Nothing in those files is edited
//! by hand.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use folkmoot_protocol::chat::{
    AccountCreate, AccountDelete, AdminRoomUpdate, AdminRooms, AdminSettings, AdminSettingsUpdate,
    AdminUserDelete, AdminUserUpdate, AdminUsers, ConnInfo, ConnectData, LiveView, ModerationPage,
    PasswordChange, PasswordReset, Problem, ResetLink, RetentionRules, RoomEvent, ServerLimits,
    SessionCreate, SetupCreate, SetupState, SignedIn, StorageView, UploadProgress, UserEvent,
};
use folkmoot_protocol::rpc::{Method, MethodVisitor, RoomPublish, visit_methods};
use folkmoot_protocol::{DisconnectCode, ErrorCode, limits};
use ts_rs::{Config, TS, TypeVisitor};

const HEADER: &str =
    "// Generated from crates/folkmoot-protocol by its example generate_types; do not edit.\n";

/// Collects the declarations of types and of all they mention, by name.
#[derive(Default)]
struct Declarations {
    config: Config,
    /// Views, events and HTTP bodies.
    chat: BTreeMap<String, String>,
    /// Requests and replies of methods.
    rpc: BTreeMap<String, String>,
    methods: Vec<(&'static str, String, String)>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Only derived types have a path; the others are TypeScript's own.
        if T::output_path().is_none() {
            return;
        }
        let name = T::ident(&self.config);
        let file = match type_name::<T>().contains("::rpc::") {
            true => &mut self.rpc,
            false => &mut self.chat,
        };
        if file.contains_key(&name) {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        file.insert(name, tidy(&format!("{docs}export {}", T::decl(&self.config))));
        T::visit_dependencies(self);
    }
}

impl MethodVisitor for Declarations {
    fn visit<M>(&mut self)
    where
        M: Method + TS + 'static,
        M::Reply: TS + 'static,
    {
        TypeVisitor::visit::<M>(self);
        TypeVisitor::visit::<M::Reply>(self);
        self.methods.push((M::NAME, M::name(&self.config), M::Reply::name(&self.config)));
    }
}

/// Lays a declaration out as one would by hand: short comments, one field or alternative per line.
fn tidy(declaration: &str) -> String {
    let text = declaration.replace("/**\n * ", "/** ").replace("\n */", " */");
    let text = text.replace(", } | ", " }\n  | ");
    let text = text.replace(" & MessageEvent | ", " & MessageEvent\n  | ");
    let text = text.replace(" & Excerpt | ", " & Excerpt\n  | ");
    let has_field_lines = text.contains("= { \n");
    let text = text.replace(", };", if has_field_lines { ",\n};" } else { " };" });
    let mut tidied = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim_end) {
        let field = has_field_lines && inside && line != "};";
        writeln!(tidied, "{}{line}", if field { "  " } else { "" }).expect("a string takes all");
        inside |= line.ends_with('{');
    }
    tidied
}

/// What is said over HTTP only.
const HTTP_BODIES: &[fn(&mut Declarations)] = &[
    TypeVisitor::visit::<AccountCreate>,
    TypeVisitor::visit::<SessionCreate>,
    TypeVisitor::visit::<SignedIn>,
    TypeVisitor::visit::<PasswordChange>,
    TypeVisitor::visit::<AccountDelete>,
    TypeVisitor::visit::<AdminUserDelete>,
    TypeVisitor::visit::<AdminRoomUpdate>,
    TypeVisitor::visit::<AdminSettings>,
    TypeVisitor::visit::<AdminSettingsUpdate>,
    TypeVisitor::visit::<Problem>,
    TypeVisitor::visit::<UploadProgress>,
    TypeVisitor::visit::<ServerLimits>,
    TypeVisitor::visit::<ConnectData>,
    TypeVisitor::visit::<SetupState>,
    TypeVisitor::visit::<SetupCreate>,
    TypeVisitor::visit::<PasswordReset>,
    TypeVisitor::visit::<AdminUsers>,
    TypeVisitor::visit::<AdminUserUpdate>,
    TypeVisitor::visit::<ResetLink>,
    TypeVisitor::visit::<AdminRooms>,
    TypeVisitor::visit::<StorageView>,
    TypeVisitor::visit::<RetentionRules>,
    TypeVisitor::visit::<LiveView>,
    TypeVisitor::visit::<ModerationPage>,
];

/// The names of `known` that `text` uses, for an import.
fn used<'a>(known: impl Iterator<Item = &'a String>, text: &str) -> String {
    let words: BTreeSet<&str> = text.split(|char: char| !char.is_alphanumeric()).collect();
    let names: Vec<&str> = known.map(String::as_str).filter(|name| words.contains(name)).collect();
    names.join(", ")
}

fn chat_and_methods() -> (String, String) {
    let mut declarations = Declarations::default();
    visit_methods(&mut declarations);
    TypeVisitor::visit::<RoomEvent>(&mut declarations);
    TypeVisitor::visit::<UserEvent>(&mut declarations);
    TypeVisitor::visit::<RoomPublish>(&mut declarations);
    TypeVisitor::visit::<ConnInfo>(&mut declarations);
    for visit in HTTP_BODIES {
        visit(&mut declarations);
    }

    let mut rpc: Vec<String> = declarations.rpc.into_values().collect();
    rpc.push(method_table(&declarations.methods));
    let rpc = rpc.join("\n");
    let imports = used(declarations.chat.keys(), &rpc);
    let chat: Vec<String> = declarations.chat.into_values().collect();
    (
        format!("{HEADER}\n{}", chat.join("\n")),
        format!("{HEADER}\nimport type {{ {imports} }} from './chat';\n\n{rpc}"),
    )
}

fn method_table(rows: &[(&'static str, String, String)]) -> String {
    let mut text =
        "/** Request and reply of every rpc method. */\nexport interface Methods {\n".to_owned();
    for (name, request, reply) in rows {
        writeln!(text, "  '{name}': {{ request: {request}; reply: {reply} }};")
            .expect("a string takes all");
    }
    text.push_str("}\n\nexport type Method = keyof Methods;\n");
    text.push_str("export type Request<M extends Method> = Methods[M]['request'];\n");
    text.push_str("export type Reply<M extends Method> = Methods[M]['reply'];\n");
    text
}

fn codes() -> String {
    let mut text = HEADER.to_owned();
    let errors: Vec<_> =
        ErrorCode::ALL.iter().map(|code| (code.name(), code.code(), code.text())).collect();
    let ends: Vec<_> =
        DisconnectCode::ALL.iter().map(|code| (code.name(), code.code(), code.text())).collect();
    for (object, doc, rows) in [
        ("ErrorCode", "Why a command failed.", errors),
        ("DisconnectCode", "Why the server closed.", ends),
    ] {
        writeln!(text, "\n/** {doc} */\nexport const {object} = {{").expect("a string takes all");
        for (name, code, doc) in rows {
            writeln!(text, "  /** {doc} */\n  {name}: {code},").expect("a string takes all");
        }
        writeln!(
            text,
            "}} as const;\nexport type {object} = (typeof {object})[keyof typeof {object}];"
        )
        .expect("a string takes all");
    }
    text
}

fn limit_constants() -> String {
    let mut text = HEADER.to_owned();
    for (name, value, doc) in limits::ALL {
        writeln!(text, "\n/**{doc} */\nexport const {name} = {value};")
            .expect("a string takes all");
    }
    text
}

fn main() -> ExitCode {
    let check = match env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            eprintln!("unknown argument {other}; the only one is --check");
            return ExitCode::FAILURE;
        }
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/src/protocol/generated");
    let (chat, methods) = chat_and_methods();
    let files = [
        ("chat.ts", chat),
        ("methods.ts", methods),
        ("codes.ts", codes()),
        ("limits.ts", limit_constants()),
    ];
    let mut stale = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|committed| committed == text) {
            continue;
        }
        if check {
            stale.push(name);
            continue;
        }
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text)) {
            eprintln!("cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if stale.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "web/src/protocol/generated is out of date: {}; run this without --check",
        stale.join(", ")
    );
    ExitCode::FAILURE
}
