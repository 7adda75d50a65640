// The page: one connection to the relay, one personal channel with the news of all rooms. A room has
// a version that each change raises; news that come out of order are put in order, and a gap is
// filled from the messenger's own API.

import { call, Refused } from './api.js';

const part = (id) => document.getElementById(id);
const rooms = new Map();
let me;
let open;
let relay;

function show(problem) {
  for (const place of document.querySelectorAll('.problem')) {
    place.textContent = problem ?? '';
    place.hidden = !problem;
  }
}

/** Runs what a person has asked for, and says why it failed. */
async function attempt(work) {
  try {
    show(undefined);
    return await work();
  } catch (failure) {
    show(failure instanceof Refused ? failure.message : 'The messenger cannot be reached.');
  }
}

function onSubmit(id, work) {
  part(id).addEventListener('submit', (event) => {
    event.preventDefault();
    void attempt(() => work(new FormData(event.target, event.submitter), event));
  });
}

async function enter(person) {
  me = person;
  part('entrance').hidden = me !== null;
  part('chat').hidden = me === null;
  if (!me) return;
  part('me').textContent = me.name;
  await listRooms();
  await connect();
}

async function connect() {
  const { url, channel } = await call('GET', 'tokens');
  const tokens = async (kind) => (await call('GET', 'tokens'))[kind];
  relay = new Centrifuge(url, { getToken: () => tokens('connection'), minReconnectDelay: 100, maxReconnectDelay: 2000 });
  for (const state of ['connecting', 'connected', 'disconnected']) relay.on(state, () => (part('connection').textContent = state));
  const personal = relay.newSubscription(channel, { getToken: () => tokens('subscription') });
  personal.on('publication', ({ data }) => void hear(data));
  // What the relay no longer knows is asked of the messenger.
  personal.on('subscribed', ({ wasRecovering, recovered }) => {
    if (!wasRecovering || !recovered) void attempt(refresh);
  });
  personal.subscribe();
  relay.connect();
}

async function refresh() {
  await listRooms();
  await Promise.all([...rooms.values()].filter((room) => room.joined && room.messages).map(catchUp));
}

async function listRooms() {
  for (const { id, name, joined, version } of (await call('GET', 'rooms')).rooms) {
    const known = rooms.get(id);
    rooms.set(id, known ? { ...known, joined } : { id, name, joined, version });
  }
  draw();
}

/** Takes what a room has that this page has not. */
async function catchUp({ id }) {
  const { version, complete, messages } = await call('GET', `rooms/${id}/messages?after=${newest(rooms.get(id))}`);
  const room = rooms.get(id);
  // After a long absence the page begins anew with the newest.
  room.messages = complete ? merged(room.messages ?? [], messages) : messages;
  room.version = Math.max(room.version, version);
  draw();
}

function newest(room) {
  return room.messages?.at(-1)?.version ?? 0;
}

function merged(before, more) {
  const all = new Map([...before, ...more].map((message) => [message.version, message]));
  return [...all.values()].sort((one, other) => one.version - other.version);
}

/** One piece of news about a room. */
async function hear({ room: id, version, type, name, user, message }) {
  if (!rooms.has(id)) rooms.set(id, { id, name: name ?? '', joined: false, version: version - 1 });
  const room = rooms.get(id);
  const isNext = version === room.version + 1;
  if (user?.id === me.id) room.joined = type === 'joined';
  if (isNext) room.version = version;
  if (isNext && message && room.messages) room.messages = merged(room.messages, [message]);
  // Something between is missing, or came before this: the messenger has all of it.
  if (!isNext && version > room.version && room.joined && room.messages) await attempt(() => catchUp(room));
  draw();
}

async function look(room) {
  open = room.id;
  if (!room.joined) await call('POST', `rooms/${room.id}/membership`);
  room.joined = true;
  await catchUp(room);
}

function item(tag, text, ...children) {
  const element = document.createElement(tag);
  element.append(...children, text);
  return element;
}

function draw() {
  const list = [...rooms.values()].sort((one, other) => one.name.localeCompare(other.name));
  part('rooms').replaceChildren(...list.map((room) => {
    const button = item('button', room.joined ? room.name : `Join ${room.name}`);
    if (room.id === open) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => void attempt(() => look(room)));
    return item('li', '', button);
  }));
  const room = rooms.get(open);
  part('room').hidden = !room?.joined;
  if (!room?.joined) return;
  part('title').textContent = room.name;
  const messages = part('messages');
  messages.replaceChildren(...(room.messages ?? []).map(({ user, text }) => item('li', '', item('strong', user.name), item('span', text))));
  messages.scrollTop = messages.scrollHeight;
}

onSubmit('entrance', async (form, event) => {
  const path = event.submitter?.value === 'new' ? 'account' : 'session';
  await enter((await call('POST', path, { name: form.get('name'), password: form.get('password') })).me);
});
onSubmit('new-room', async (form, event) => {
  const { id } = await call('POST', 'rooms', { name: form.get('name') });
  event.target.reset();
  await listRooms();
  await look(rooms.get(id));
});
onSubmit('new-message', async (form, event) => {
  await call('POST', `rooms/${open}/messages`, { text: form.get('text') });
  event.target.reset();
});
part('leave-room').addEventListener('click', () => void attempt(() => call('DELETE', `rooms/${open}/membership`)));
part('leave-page').addEventListener('click', () => void attempt(async () => {
  await call('DELETE', 'session');
  relay.disconnect();
  rooms.clear();
  open = undefined;
  await enter(null);
}));

void attempt(async () => enter((await call('GET', 'session')).me));
