//! When a status ends, as people say it.

export const STATUS_ENDS = ['never', 'half_hour', 'hour', 'four_hours', 'today', 'week'] as const;

export type StatusEnd = (typeof STATUS_ENDS)[number];

const MINUTE_MS = 60_000;
const SUNDAY = 7;

/** The moment, by the clock of whoever says it; undefined without an end. */
export function endOf(end: StatusEnd, now: number): number | undefined {
  switch (end) {
    case 'never':
      return undefined;
    case 'half_hour':
      return now + 30 * MINUTE_MS;
    case 'hour':
      return now + 60 * MINUTE_MS;
    case 'four_hours':
      return now + 240 * MINUTE_MS;
    case 'today':
      return midnightAfter(now, 0);
    case 'week':
      return midnightAfter(now, (SUNDAY - new Date(now).getDay()) % SUNDAY);
  }
}

/** The end of the day that comes so many days later; days of a clock change are shorter or longer. */
function midnightAfter(now: number, days: number): number {
  const day = new Date(now);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days + 1).getTime();
}
