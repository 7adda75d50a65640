// The page: connects, plays, and hands what comes in to the world and the panels.
//
// The connection is a small state machine: 'connecting' → 'open' → 'waiting' → 'connecting'. A player that was playing resumes with
// its token, and an act that had no answer is sent again with the same number: the server does it once.

import { Canvas } from './canvas.js';
import { say, showBoard, showFigures, showLink, showOwn, tell } from './panels.js';
import { actFrame, DEED, joinFrame, notices, resumeFrame, watchFrame, WORLD_SIDE } from './wire.js';
import { World } from './world.js';

const STEPS = { n: [0, -1], s: [0, 1], w: [-1, 0], e: [1, 0], nw: [-1, -1], ne: [1, -1], sw: [-1, 1], se: [1, 1] };
const KEYS = {
  ArrowUp: 'n', ArrowDown: 's', ArrowLeft: 'w', ArrowRight: 'e', w: 'n', s: 's', a: 'w', d: 'e',
  ' ': 'dig', e: 'take', q: 'drop', m: 'zoom', l: 'leave', '+': 'in', '=': 'in', '-': 'out',
};
const ZOOM = { first: 14, least: 3, most: 40 };
const ACT_EVERY_MS = 110;
const RETRY_MS = [250, 500, 1000, 2000, 4000];
const NO_SUCH_PLAYER = 14;

const canvas = new Canvas(document.getElementById('map'));
const world = new World();
const game = { isLive: false, name: '', token: null, state: null, open: null, next: null, sentAt: 0, socket: null, tries: 0 };

function connect() {
  showLink(game.tries ? 'connecting again…' : null);
  const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/socket`);
  socket.binaryType = 'arraybuffer';
  game.socket = socket;
  socket.onopen = () => {
    game.tries = 0;
    showLink(null);
    socket.send(watchFrame());
    if (game.state) socket.send(resumeFrame(game.state.player, game.token));
  };
  socket.onmessage = ({ data }) => {
    for (const notice of notices(data)) take(notice);
  };
  socket.onclose = () => {
    game.isLive = false;
    const pause = RETRY_MS[Math.min(game.tries, RETRY_MS.length - 1)];
    game.tries += 1;
    showLink('connection lost');
    setTimeout(connect, pause * (0.7 + Math.random() * 0.6));
  };
}

function take(notice) {
  const now = performance.now();
  if (notice.kind === 'view') world.view(notice, now);
  else if (notice.kind === 'snapshot') world.snapshot(notice, now);
  else if (notice.kind === 'joined') joined(notice);
  else if (notice.kind === 'done') done(notice.state);
  else if (notice.kind === 'refused') refused(notice);
  else if (notice.kind === 'fault') say(notice.text);
}

function joined({ token, state }) {
  const isBack = game.state !== null;
  Object.assign(game, { token, state, isLive: true });
  canvas.zoom ??= ZOOM.first;
  showOwn(game.name, state);
  if (!isBack) tell(state);
  // What had no answer before the connection broke is asked again.
  if (game.open && game.open.seq > state.seq) send(game.open);
  else game.open = null;
  document.getElementById('map').focus();
}

function done(state) {
  if (state.player !== game.state?.player) return;
  game.open = null;
  if (state.deed === DEED.leave) {
    Object.assign(game, { state: null, token: null, next: null });
    canvas.zoom = null;
    say('You have left. What you carried lies where you stood.');
    showOwn(game.name, null);
    return;
  }
  game.state = state;
  showOwn(game.name, state);
  tell(state);
}

function refused({ player, seq, code, text }) {
  if (code === NO_SUCH_PLAYER && player === game.state?.player) {
    Object.assign(game, { state: null, token: null, open: null });
    showOwn(game.name, null);
  }
  if (seq === game.open?.seq) game.open = null;
  say(text);
}

function send(act) {
  game.open = act;
  game.sentAt = performance.now();
  if (game.socket.readyState === WebSocket.OPEN) game.socket.send(actFrame(act));
}

function play(what) {
  const { state } = game;
  if (what === 'zoom') canvas.zoom = canvas.zoom === null ? ZOOM.first : null;
  else if (what === 'in') canvas.zoom = Math.min(ZOOM.most, (canvas.zoom ?? ZOOM.least) * 1.25);
  else if (what === 'out') canvas.zoom = Math.max(ZOOM.least, (canvas.zoom ?? ZOOM.least) / 1.25);
  else if (state && (!game.isLive || game.open || performance.now() - game.sentAt < ACT_EVERY_MS)) {
    // Steps are repeated by the held key anyway; anything else waits for its turn.
    if (!STEPS[what]) game.next = what;
  } else if (state) {
    const [dx, dy] = STEPS[what] ?? [0, 0];
    const [x, y] = [state.x + dx, state.y + dy];
    if (x < 0 || y < 0 || x >= WORLD_SIDE || y >= WORLD_SIDE) return;
    send({ player: state.player, seq: state.seq + 1, deed: STEPS[what] ? DEED.move : DEED[what], x, y });
  }
}

/** Held keys walk on; two of them walk diagonally. */
const held = new Set();
function walk() {
  const sum = [...held].map((step) => STEPS[step]).reduce(([x, y], [dx, dy]) => [x + dx, y + dy], [0, 0]);
  const step = Object.entries(STEPS).find(([, [dx, dy]]) => dx === Math.sign(sum[0]) && dy === Math.sign(sum[1]));
  if (step) play(step[0]);
}

document.addEventListener('keydown', (event) => {
  if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
  const what = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!what || (what === 'dig' && event.target instanceof HTMLButtonElement)) return;
  event.preventDefault();
  if (STEPS[what]) {
    held.add(what);
    walk();
  } else if (!event.repeat) play(what);
});
document.addEventListener('keyup', (event) => held.delete(KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]));
window.addEventListener('blur', () => held.clear());
document.getElementById('pad').addEventListener('click', (event) => {
  const what = event.target.closest('button')?.dataset.act;
  if (what) play(what);
});
document.getElementById('join').addEventListener('submit', (event) => {
  event.preventDefault();
  game.name = document.getElementById('name').value.trim();
  if (game.name && game.socket.readyState === WebSocket.OPEN) game.socket.send(joinFrame(1, game.name));
});

let before = null;
async function poll() {
  try {
    const status = await (await fetch('/status')).json();
    const now = performance.now();
    showBoard(status.best, game.state?.player);
    showFigures(status, before?.status, before ? (now - before.now) / 1000 : 1);
    before = { status, now };
  } catch {
    before = null;
  }
  setTimeout(poll, 1000);
}

function frame(now) {
  const { next } = game;
  game.next = null;
  if (next) play(next);
  if (held.size) walk();
  canvas.draw(world, world.players.get(game.state?.player), now);
  requestAnimationFrame(frame);
}

connect();
poll();
canvas.load().then(() => { document.documentElement.dataset.ground = 'complete'; });
requestAnimationFrame(frame);
