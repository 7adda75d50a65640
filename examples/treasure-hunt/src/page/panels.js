// The panels beside the map: leader board, figures, and what the player has. Text only, never HTML.

const WARM = [[0, 'here!'], [2, 'hot'], [5, 'warm'], [10, 'lukewarm'], [20, 'cool'], [62, 'cold']];
const DEEDS = ['join', 'move', 'dig', 'take', 'drop', 'leave'];

const byId = (id) => document.getElementById(id);
const round = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const bytes = (value) => value > 1e9 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e6).toFixed(1)} MB`;

export function showBoard(best, ownId) {
  byId('board').replaceChildren(...(best.length ? best.map((line) => {
    const item = document.createElement('li');
    item.classList.toggle('me', line.player === ownId);
    item.append(element('span', line.name), element('b', round.format(line.score)));
    return item;
  }) : [Object.assign(element('li', 'nobody has points yet'), { className: 'empty' })]));
}

export function showFigures(status, before, seconds) {
  const alive = Object.fromEntries(status.actors.map((kind) => [kind.name, kind.alive]));
  const rate = before ? (status.log.events - before.log.events) / seconds : 0;
  const cores = before ? (status.process.cpu_s - before.process.cpu_s) / seconds : 0;
  figures('figures', {
    players: round.format(status.players),
    regions: round.format(alive['hunt.region'] ?? 0),
    'events/s': round.format(rate),
    cores: cores.toFixed(2),
    memory: bytes(status.process.resident_bytes),
    log: bytes(status.log.bytes),
    'tile chunks': round.format(status.arena.chunks),
    sessions: round.format(alive['hunt.session'] ?? 0),
    killed: round.format(status.acts.killed),
    'asked again': round.format(status.acts.retries),
  }, ['killed']);
  const { teleports, floods, foreign, malformed, oversized, refused } = status.acts;
  figures('cheats', { teleports, floods, foreign, malformed, oversized, refused }, ['teleports', 'floods', 'foreign', 'malformed', 'oversized']);
}

function figures(id, values, hot) {
  byId(id).replaceChildren(...Object.entries(values).map(([name, value]) => {
    const line = document.createElement('div');
    line.append(element('dt', name), element('dd', `${value}`));
    line.classList.toggle('hot', hot.includes(name) && `${value}` !== '0');
    return line;
  }));
}

export function showOwn(name, state) {
  byId('hud').hidden = !state;
  byId('keys').hidden = !state;
  byId('pad').hidden = !state;
  byId('join').hidden = !!state;
  if (!state) return;
  byId('me-name').textContent = name;
  byId('me-score').textContent = round.format(state.score);
  byId('me-carried').textContent = '●'.repeat(state.carried) + '○'.repeat(Math.max(0, 3 - state.carried));
  byId('me-scent').textContent = warmth(state.scent);
}

function warmth(scent) {
  return WARM.find(([most]) => scent <= most)?.[1] ?? 'none';
}

/** A sentence about an own event, for eyes and screen readers. */
export function tell(state) {
  const deed = DEEDS[state.deed];
  if (deed === 'dig') say(state.gain ? `You found a clue: ${state.gain} points. Take it to a camp.` : 'Nothing here but a hole.');
  else if (deed === 'take') say(`You carry ${state.carried} of 3 clues.`);
  else if (deed === 'drop') say(state.gain ? `Delivered: ${state.gain} points!` : 'You put the clue down.');
  else if (deed === 'join') say('Walk with the arrow keys; the trail gets warmer near a clue.');
  else if (state.clue) say('A clue lies here: E takes it.');
  else if (state.camp && state.carried) say('A camp: Q delivers a clue.');
  else if (state.scent === 0) say('Something is buried here: space digs.');
}

export function say(text) {
  byId('news').textContent = text;
}

export function showLink(text) {
  byId('link').hidden = !text;
  byId('link').textContent = text ?? '';
}

function element(kind, content) {
  const made = document.createElement(kind);
  made.textContent = content;
  return made;
}
