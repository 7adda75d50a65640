//! Durable actors, and what they leave for others.

mod behind;
mod clock_steps;
mod courier;
mod full_disk;
mod journaled;
mod many_reminders;
mod moved_changes;
mod moved_letters;
mod moved_reminders;
mod other_replies;
mod saved;
mod taken_down;
mod through;
