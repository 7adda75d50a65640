//! The English sentences of the pages that few people open: administration, the first administrator, a new password.

import type { ModerationAction, Role } from '../../protocol/generated/chat';
import { plural } from '../plural';

const one = (count: number, singular: string, other: string) => plural('en', count, { one: singular, other });
const ROLES = { owner: 'owner', moderator: 'moderator', member: 'member' };

export const en = {
  // The first administrator
  setup_title: 'Set up your server',
  setup_hint: 'Create the account that administers it. Others can sign up by themselves later.',
  setup_create: 'Create administrator',
  setup_instead: 'Sign in instead',
  setup_wrong_link: 'This link is wrong, was used, or belongs to an earlier start of the server. Its terminal shows the present one.',
  setup_done_before: 'This server has an administrator already. Sign in instead.',
  // A new password
  reset_title: 'Choose a new password',
  reset_hint: 'All your other devices are signed out.',
  reset_save: 'Save and sign in',
  reset_spent: 'This link is wrong, was used or has expired. Ask your administrator for a new one.',
  // The page
  title: 'Administration',
  only_administrators: 'This page is for administrators of the server.',
  overview: 'Overview',
  users: 'Users',
  rooms: 'Rooms',
  settings: 'Settings',
  storage: 'Storage',
  log: 'Moderation log',
  back_to_chat: 'Back to chat',
  show_more: 'Show more',
  nothing_found: 'Nothing found.',
  refresh: 'Refresh',
  // Overview
  connections: 'Connections',
  messages_per_second: 'Messages per second',
  append_latency: 'Time to disk',
  actors: 'Actors in memory',
  last_minute: 'last minute',
  highest: (value: string) => `highest ${value}`,
  half_below: (value: string) => `half below ${value}`,
  no_appends: 'nothing written',
  since_start: (count: string) => `${count} since the start`,
  days: (count: number) => one(count, '1 day', `${count} days`),
  hours: (count: number) => one(count, '1 hour', `${count} hours`),
  minutes: (count: number) => one(count, '1 minute', `${count} minutes`),
  running_for: (version: string, time: string) => `Folkmoot ${version}, up for ${time}`,
  live_lost: 'The counters cannot be reached. Trying again…',
  actor_type: 'Actor type',
  actor_live: 'In memory',
  actor_waiting: 'Messages waiting',
  actor_handled: 'Messages handled',
  actor_names: { 'folkmoot.room': 'Rooms', 'folkmoot.user': 'Users', 'folkmoot.session': 'Sessions', 'folkmoot.search': 'Search', 'folkmoot.uploads': 'Uploads' } as Record<string, string>,
  // Users
  search_users: 'Find a user',
  administrator: 'Administrator',
  disabled: 'Disabled',
  user_facts: (devices: number, rooms: number) => `${one(devices, '1 device', `${devices} devices`)} · ${one(rooms, '1 room', `${rooms} rooms`)}`,
  joined_at: (time: string) => `since ${time}`,
  seen_at: (time: string) => `seen ${time}`,
  actions_for: (name: string) => `Actions for ${name}`,
  make_administrator: 'Make administrator',
  unmake_administrator: 'Remove as administrator',
  disable: 'Disable account',
  disable_confirm: (name: string) => `Disable the account of ${name}? All devices are signed out at once, and nobody can sign in to it until you enable it again. Messages stay.`,
  enable: 'Enable account',
  sign_out_everywhere: 'Sign out all devices',
  signed_out: (name: string) => `${name} was signed out everywhere.`,
  reset_password: 'Link to a new password',
  reset_link_for: (name: string) => `A new password for ${name}`,
  reset_link_hint: (until: string) => `Hand this link over. It works once, until ${until}, and is shown only now.`,
  reset_link: 'Link',
  // Rooms
  search_rooms: 'Find a room',
  room_messages: (count: number, shown: string) => one(count, '1 message', `${shown} messages`),
  room_members: (count: number, shown: string) => one(count, '1 member', `${shown} members`),
  last_message: (time: string) => `last ${time}`,
  never_used: 'nothing said yet',
  // Settings
  registration: 'Who may make an account',
  registration_open: 'Everybody',
  registration_invite: 'Who was invited to a room',
  registration_closed: 'Nobody',
  registration_fixed: 'Set by a flag or the settings file of the server.',
  branding: 'Name, colour and logo',
  branding_hint: 'Everybody sees them, also before signing in. A page that is open shows them when it is loaded again.',
  server_name: 'Name of the server',
  accent: 'Hue of the accent colour',
  accent_own: 'Folkmoot’s own colour',
  logo: 'Logo',
  keeping: 'How long messages are kept',
  keeping_hint: 'Messages beyond a limit are deleted for good. An empty field is no limit.',
  keeping_days: 'Days',
  keeping_messages: 'Newest messages of a room',
  keeping_warning: 'Messages beyond these limits will be deleted, and nobody can bring them back.',
  keeping_delete: 'Save and delete messages',
  keeping_everywhere: 'As in all rooms',
  keeping_own: 'Limits of its own',
  keeping_of: (room: string) => `How long ${room} keeps messages`,
  // Storage
  on_disk: 'In the data directory',
  parts: { log: 'Log', database: 'Database', attachments: 'Attachments', search: 'Search index' } as Record<string, string>,
  free: (free: string, all: string) => `${free} of ${all} free on this disk`,
  contents: 'What is in it',
  count_users: 'Users',
  count_rooms: 'Rooms',
  count_directs: 'Direct conversations',
  count_messages: 'Messages',
  text_bytes: 'Text of all messages',
  segments: 'Log segments',
  lag: 'Not in the database yet',
  // Log of moderation
  log_hint: 'Who did what to whom. Entries cannot be changed or deleted.',
  log_empty: 'Nothing has happened yet.',
  somebody: 'Somebody',
  a_conversation: 'a direct conversation',
  acts: {
    kicked: ({ by, user, room }) => `${by} removed ${user} from ${room}`,
    banned: ({ by, user, room }) => `${by} banned ${user} from ${room}`,
    unbanned: ({ by, user, room }) => `${by} lifted the ban of ${user} from ${room}`,
    muted: ({ by, user, room, until }) => `${by} muted ${user} in ${room} until ${until}`,
    unmuted: ({ by, user, room }) => `${by} let ${user} speak in ${room} again`,
    role_set: ({ by, user, room, role }) => `${by} made ${user} ${role === 'member' || role === 'moderator' ? 'a' : 'an'} ${ROLES[role]} of ${room}`,
    message_deleted: ({ by, user, room }) => `${by} deleted a message by ${user} in ${room}`,
    invite_made: ({ by, room, until }) => `${by} made an invitation to ${room}${until === '' ? '' : ` that ends ${until}`}`,
    invite_revoked: ({ by, room }) => `${by} revoked an invitation to ${room}`,
    room_archived: ({ by, room }) => `${by} archived ${room}`,
    room_opened: ({ by, room }) => `${by} opened ${room} again`,
    room_deleted: ({ by }) => `${by} deleted a room`,
    room_made_open: ({ by, room }) => `${by} opened ${room} to everybody`,
    room_made_listed: ({ by, room }) => `${by} listed ${room}, by invitation`,
    room_made_hidden: ({ by, room }) => `${by} hid ${room}`,
    set_up: ({ by }) => `${by} set the server up`,
    administrator_made: ({ by, user }) => `${by} made ${user} an administrator`,
    administrator_unmade: ({ by, user }) => `${by} removed ${user} as administrator`,
    user_disabled: ({ by, user }) => `${by} disabled the account of ${user}`,
    user_enabled: ({ by, user }) => `${by} enabled the account of ${user}`,
    devices_signed_out: ({ by, user }) => `${by} signed out all devices of ${user}`,
    reset_link_made: ({ by, user }) => `${by} made a link to a new password for ${user}`,
    password_reset: ({ by }) => `${by} chose a new password by link`,
    account_deleted: ({ by }) => `${by} deleted an account`,
  } as Acts,
};

/** The parts of a sentence of the log; empty where the entry has none. */
export interface Act {
  by: string;
  user: string;
  room: string;
  role: Role;
  until: string;
}

type Acts = Record<ModerationAction, (act: Act) => string>;
type Widened<T> = { [K in keyof T]: T[K] extends string ? string : T[K] };

export type AdministrationStrings = Widened<typeof en>;
