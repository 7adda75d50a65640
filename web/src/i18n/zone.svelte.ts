//! The time zone of the device, which changes while a page is open when somebody travels. Whatever shows a time or a day
//! reads it, and so shows it anew.

let zone = $state.raw(zoneOfNow());

function zoneOfNow(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function timeZone(): string {
  return zone;
}

export function lookAtTimeZone(): void {
  zone = zoneOfNow();
}
