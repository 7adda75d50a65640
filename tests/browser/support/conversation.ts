//! A conversation that shows what the client can, for the pictures.

import { attach } from './attach';
import type { Person } from './person';
import { harbour, text } from './picture';

interface Cast {
  astrid: Person;
  bo: Person;
  chidi: Person;
}

export async function holdConversation({ astrid, bo, chidi }: Cast): Promise<void> {
  await turn(astrid, 'Good morning! The crane is booked for **Thursday at 09:00**. Tide is with us until noon.');
  await turn(astrid, 'What we still need:\n\n- two fenders for the north berth\n- somebody who can drive the van');
  await turn(bo, 'I can drive. Also, the tide table is machine-readable now: https://tides.example.org/harbour.json');
  await turn(chidi, 'Nice. Then the reminder can look like this:\n\n```rust\nfn high_water(table: &[Tide], now: Time) -> Option<&Tide> {\n    table.iter().find(|tide| tide.at > now && tide.is_high())\n}\n```');
  await astrid.message('machine-readable').waitFor();
  await astrid.act('machine-readable', 'Reply');
  await turn(astrid, 'Perfect, thank you. I will put it into the reminder.');
  await bo.message('into the reminder').waitFor();
  await react(bo, 'The crane is booked', '🎉');
  await react(chidi, 'The crane is booked', '🎉');
  await react(astrid, 'I can drive', '👍');
  await turn(chidi, 'And who brings the coffee? Last time it was @astrid, and it was *excellent*.');
  await answer(bo, 'who brings the coffee', '☕️');
  await answer(astrid, '☕️', 'Fine. But then `@bo` brings the cinnamon buns.');
  await answer(chidi, 'Fine. But then', 'All of them. I counted on it.');
  await react(bo, 'I counted on it', '😂');
  await attach(bo, harbour('north-berth.png', 900, 420), text('tides-november.csv', 'day,high,low\n'.repeat(90)));
  await bo.page.getByText('Ready to send').nth(1).waitFor();
  await turn(bo, 'Deal. The north berth this morning, and the tides of the month:');
  await astrid.message('The north berth').locator('img').waitFor();
}

async function turn(person: Person, text: string): Promise<void> {
  await person.say(text);
  await person.allSent();
}

async function answer(person: Person, to: string, text: string): Promise<void> {
  await person.message(to).waitFor();
  await person.act(to, 'Reply');
  await turn(person, text);
}

async function react(person: Person, text: string, emoji: string): Promise<void> {
  await person.act(text, 'React');
  await person.page.getByRole('button', { name: emoji, exact: true }).last().click();
  await person.message(text).getByRole('button', { name: new RegExp(`${emoji}.*including you`) }).waitFor();
}
